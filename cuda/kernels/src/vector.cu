// Vector operations of device.Device, each with the CPU's bits: products and sums are rounded one
// by one, from left to right. An output may be one of the inputs, at the same offsets.
#include "each.cuh"
#include "vector.cuh"

KERNEL(256) copy_words(u32 *dst, const u32 *src, i64 n) { copy_words_of(GridBlock(), dst, src, n); }

KERNEL(256) fill(float *dst, i64 n, float value) { fill_of(GridBlock(), dst, n, value); }

KERNEL(256) combine1(float *dst, i64 n, const float *v0, float a0) { combine1_of(GridBlock(), dst, n, v0, a0); }

KERNEL(256) combine2(float *dst, i64 n, const float *v0, float a0, const float *v1, float a1) {
  combine2_of(GridBlock(), dst, n, v0, a0, v1, a1);
}

KERNEL(256)
combine3(float *dst, i64 n, const float *v0, float a0, const float *v1, float a1, const float *v2, float a2) {
  combine3_of(GridBlock(), dst, n, v0, a0, v1, a1, v2, a2);
}

KERNEL(256)
combine4(float *dst, i64 n, const float *v0, float a0, const float *v1, float a1, const float *v2, float a2,
         const float *v3, float a3) {
  combine4_of(GridBlock(), dst, n, v0, a0, v1, a1, v2, a2, v3, a3);
}

KERNEL(256)
combine5(float *dst, i64 n, const float *v0, float a0, const float *v1, float a1, const float *v2, float a2,
         const float *v3, float a3, const float *v4, float a4) {
  combine5_of(GridBlock(), dst, n, v0, a0, v1, a1, v2, a2, v3, a3, v4, a4);
}

KERNEL(256)
combine6(float *dst, i64 n, const float *v0, float a0, const float *v1, float a1, const float *v2, float a2,
         const float *v3, float a3, const float *v4, float a4, const float *v5, float a5) {
  combine6_of(GridBlock(), dst, n, v0, a0, v1, a1, v2, a2, v3, a3, v4, a4, v5, a5);
}

// combine_each is combine1 to combine3 for up to 16 vectors, selected by blockIdx.z: dst = a·x +
// b·y + c·z.
KERNEL(256)
combine_each(i64 n, int terms, EACH(float *, dst), EACH(const float *, x), EACH(const float *, y),
             EACH(const float *, z), EACH(float, a), EACH(float, b), EACH(float, c)) {
  const float *v[3] = {PICK(x), PICK(y), PICK(z)};
  const float by[3] = {PICK(a), PICK(b), PICK(c)};
  float *dst = PICK(dst);
  if (terms == 1)
    combine1_of(GridBlock(), dst, n, v[0], by[0]);
  else if (terms == 2)
    combine2_of(GridBlock(), dst, n, v[0], by[0], v[1], by[1]);
  else
    combine3_of(GridBlock(), dst, n, v[0], by[0], v[1], by[1], v[2], by[2]);
}

// combine_list is the same for any number of terms, at least one, listed in device memory.
KERNEL(256) combine_list(float *dst, i64 n, const float *const *v, const float *a, int terms) {
  i64 i = thread_index();
  if (i >= n) return;
  float s = a[0] * v[0][i];
  for (int k = 1; k < terms; k++) s = s + a[k] * v[k][i];
  dst[i] = s;
}

KERNEL(128) gather(float *dst, const float *src, const u32 *idx, i64 k) { gather_of(GridBlock(), dst, src, idx, k); }

KERNEL(256) scatter_add(float *dst, const float *v, float a, const u32 *idx, i64 k) {
  scatter_add_of(GridBlock(), dst, v, a, idx, k);
}

KERNEL(256) move_copy(float *q, float *copy, const float *v, const float *w, const u32 *idx, i64 k) {
  move_copy_of(GridBlock(), q, copy, v, w, idx, k);
}

KERNEL(256)
add_diff(const float *own, const float *other, const u32 *idx, i64 k, float *v0, float a0, float *v1, float a1) {
  add_diff_of(GridBlock(), own, other, idx, k, v0, a0, v1, a1);
}

// add_diff_list is add_diff for any number of terms, listed in device memory.
KERNEL(256)
add_diff_list(const float *own, const float *other, const u32 *idx, i64 k, float *const *v, const float *a, int terms) {
  i64 j = thread_index();
  if (j >= k) return;
  float d = own[j] - other[j];
  i64 i = idx ? (i64)idx[j] : j;
  for (int t = 0; t < terms; t++) v[t][i] = v[t][i] + a[t] * d;
}

KERNEL(256)
add_diffs(i64 n, const float *start, float scale, const float *own, int others, const float *v0, float a0,
          const float *v1, float a1, const float *v2, float a2, const float *v3, float a3, const float *v4, float a4,
          const float *v5, float a5, float *x, float b, float *y, float c) {
  add_diffs_of(GridBlock(), n, start, scale, own, others, v0, a0, v1, a1, v2, a2, v3, a3, v4, a4, v5, a5, x, b, y, c);
}

// add_diffs_list is add_diffs for any number of others and terms, listed in device memory: tₖ +=
// bₖ·S.
KERNEL(256)
add_diffs_list(i64 n, const float *start, float scale, const float *own, const float *const *v, const float *a,
               int others, float *const *t, const float *b, int terms) {
  i64 i = thread_index();
  if (i >= n) return;
  float s = start ? scale * start[i] : 0.0f;
  float at = own[i];
  for (int k = 0; k < others; k++) s = s + a[k] * (at - v[k][i]);
  for (int k = 0; k < terms; k++) t[k][i] = t[k][i] + b[k] * s;
}

// add: y = a + b.
KERNEL(256) add(float *y, const float *a, const float *b, i64 n) {
  i64 i = thread_index();
  if (i < n) y[i] = a[i] + b[i];
}

// scale_by: y = (a·s)·x, with s in device memory.
KERNEL(256) scale_by(float *y, const float *x, const float *s, float a, i64 n) {
  i64 i = thread_index();
  if (i < n) y[i] = (a * s[0]) * x[i];
}

KERNEL(256)
adamw(float *g, float *m, float *v, const float *x, i64 n, float beta1, float rest1, float beta2, float rest2,
      float scale1, float scale2, float eps, float decay, float most) {
  adamw_of(GridBlock(), g, m, v, x, n, beta1, rest1, beta2, rest2, scale1, scale2, eps, decay, most);
}

// adamw_each is adamw for several agents with the same coefficients.
KERNEL(256)
adamw_each(i64 n, EACH(float *, g), EACH(float *, m), EACH(float *, v), EACH(const float *, x), float beta1,
           float rest1, float beta2, float rest2, float scale1, float scale2, float eps, float decay, float most) {
  adamw_of(GridBlock(), PICK(g), PICK(m), PICK(v), PICK(x), n, beta1, rest1, beta2, rest2, scale1, scale2, eps, decay,
           most);
}

// move_average: y = (1-momentum)·avg + momentum·(a·x) in float64, rounded once at the end. momentum
// lies in device memory.
KERNEL(256) move_average(float *y, const float *x, const float *avg, const float *momentum, double a, i64 n) {
  i64 i = thread_index();
  if (i >= n) return;
  double m = (double)momentum[0];
  y[i] = (float)((1.0 - m) * (double)avg[i] + m * (a * (double)x[i]));
}

// multiply_views: c = beta·c + (alpha·a)·b for matrices whose elements are at multiples of two
// distances. A block computes PRODUCT_TILE×PRODUCT_TILE elements, a thread four of them in one
// column. Each sum takes its products in the order of k, so that tiles change no bits.
#define PRODUCT_TILE 32
#define PRODUCT_ROWS 4 // the rows of a thread
#define PRODUCT_STEP (PRODUCT_TILE / PRODUCT_ROWS) // from one of them to the next
KERNEL_OCCUPANCY(256, 4)
multiply_views(float *c, const float *a, const float *b, i64 rows, i64 cols, i64 inner, i64 c_down, i64 c_right,
               i64 a_down, i64 a_right, i64 b_down, i64 b_right, double alpha, float beta) {
  __shared__ float x[PRODUCT_TILE][PRODUCT_TILE + 1], y[PRODUCT_TILE][PRODUCT_TILE + 1]; // by k
  // rows, columns and products of a sum are less than 2³¹, unlike the distances times them
  const int last_row = (int)rows - 1, last_col = (int)cols - 1, products = (int)inner;
  const u32 across = ((u32)cols + PRODUCT_TILE - 1) / PRODUCT_TILE;
  const int row = (int)(blockIdx.x / across) * PRODUCT_TILE, col = (int)(blockIdx.x % across) * PRODUCT_TILE;
  const int lane = threadIdx.x % PRODUCT_TILE, group = threadIdx.x / PRODUCT_TILE;
  float *out = c + (row + group) * c_down + (col + lane) * c_right;
  float sum[PRODUCT_ROWS];
  for (int r = 0; r < PRODUCT_ROWS; r++)
    sum[r] = beta != 0.0f && row + group + r * PRODUCT_STEP <= last_row && col + lane <= last_col
                 ? beta * out[r * PRODUCT_STEP * c_down]
                 : 0.0f;
  // the threads of a warp load adjacent numbers, where there are any
  const bool a_by_k = a_right <= a_down, b_by_k = b_right > b_down;
  const int ka = a_by_k ? lane : group, i = a_by_k ? group : lane, kb = b_by_k ? lane : group,
            j = b_by_k ? group : lane;
  a += (row + i) * a_down + ka * a_right, b += kb * b_down + (col + j) * b_right;
  const i64 a_step = PRODUCT_STEP * (a_by_k ? a_down : a_right), b_step = PRODUCT_STEP * (b_by_k ? b_right : b_down);
  for (int begin = 0; begin < products; begin += PRODUCT_TILE) {
    const int depth = products - begin < PRODUCT_TILE ? products - begin : PRODUCT_TILE;
    __syncthreads();
    for (int r = 0; r < PRODUCT_ROWS; r++) {
      const int further = r * PRODUCT_STEP; // in rows of a or columns of b, or in k
      const int k = a_by_k ? ka : ka + further, at = a_by_k ? i + further : i;
      if (k < depth && row + at <= last_row) x[k][at] = (float)(alpha * (double)a[r * a_step]);
      const int l = b_by_k ? kb : kb + further, to = b_by_k ? j + further : j;
      if (l < depth && col + to <= last_col) y[l][to] = b[r * b_step];
    }
    a += PRODUCT_TILE * a_right, b += PRODUCT_TILE * b_down;
    __syncthreads();
    for (int k = 0; k < depth; k++) {
      const float v = y[k][lane];
      for (int r = 0; r < PRODUCT_ROWS; r++) sum[r] = sum[r] + x[k][group + r * PRODUCT_STEP] * v;
    }
  }
  for (int r = 0; r < PRODUCT_ROWS; r++)
    if (row + group + r * PRODUCT_STEP <= last_row && col + lane <= last_col) out[r * PRODUCT_STEP * c_down] = sum[r];
}

KERNEL(128) dot_blocks(double *part, const float *x, const float *y, i64 n) {
  dot_blocks_of(GridBlock(), part, x, y, n);
}

KERNEL(256) dot_sum(double *out64, float *out32, const double *part, i64 parts, double scale, i64 stride) {
  dot_sum_of(GridBlock(), out64, out32, part, parts, scale, stride);
}


// CoordinateRange is coordinates of a vector: those from `from` on, until the next range has as
// many before it as this one and its coordinates.
struct CoordinateRange {
  i64 from, before;
};

#define WITHIN_EACH 4 // coordinates of a thread

// each_within calls f for a thread's coordinates among those of ranges, of which there are total.
template <class F> __device__ inline void each_within(const CoordinateRange *ranges, int count, i64 total, F f) {
  i64 k = (i64)blockIdx.x * WITHIN_EACH * blockDim.x + threadIdx.x;
  for (int e = 0; e < WITHIN_EACH && k < total; e++, k += blockDim.x) {
    int low = 0, high = count; // the range is the last one that has at most k before it
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (ranges[middle].before <= k)
        low = middle;
      else
        high = middle;
    }
    f(ranges[low].from + (k - ranges[low].before));
  }
}

// combine_within is combine_each for the coordinates of ranges.
KERNEL(256)
combine_within(const CoordinateRange *ranges, int count, i64 total, int terms, EACH(float *, dst),
               EACH(const float *, x), EACH(const float *, y), EACH(const float *, z), EACH(float, a), EACH(float, b), EACH(float, c)) {
  float *to = PICK(dst);
  const float *v0 = PICK(x), *v1 = PICK(y), *v2 = PICK(z);
  const float by0 = PICK(a), by1 = PICK(b), by2 = PICK(c);
  each_within(ranges, count, total, [&](i64 i) {
    float s = by0 * v0[i];
    if (terms > 1) s = s + by1 * v1[i];
    if (terms > 2) s = s + by2 * v2[i];
    to[i] = s;
  });
}

// combine_within_list is the same for one vector and any number of terms, listed in device memory.
KERNEL(256)
combine_within_list(const CoordinateRange *ranges, int count, i64 total, float *dst, const float *const *v,
                    const float *a, int terms) {
  each_within(ranges, count, total, [&](i64 i) {
    float s = terms > 0 ? a[0] * v[0][i] : 0.0f;
    for (int k = 1; k < terms; k++) s = s + a[k] * v[k][i];
    dst[i] = s;
  });
}

// adamw_within is adamw_each for the coordinates of ranges.
KERNEL(256)
adamw_within(const CoordinateRange *ranges, int count, i64 total, EACH(float *, g), EACH(float *, m), EACH(float *, v),
             EACH(const float *, x), float beta1, float rest1, float beta2, float rest2, float scale1, float scale2,
             float eps, float decay, float most) {
  float *gradient = PICK(g), *first = PICK(m), *second = PICK(v);
  const float *at = PICK(x);
  each_within(ranges, count, total, [&](i64 i) {
    adamw_at(i, gradient, first, second, at, beta1, rest1, beta2, rest2, scale1, scale2, eps, decay, most);
  });
}
