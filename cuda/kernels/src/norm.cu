// Batch normalisation of a matrix of m rows (the pixels of a batch) and c columns (the channels),
// with an optional ReLU, or sum and ReLU. The formulas are the CPU's (cpu/norm.go), so results
// computed from given statistics have the CPU's bits in float32. The sums use another order. They
// are float64; but a thread sums at most 64 numbers of 16 bits in float32, after subtracting the
// first row if it computes a mean, so that an offset of the data costs no precision. Relative to
// Σ|x−shift| and Σ(x−shift)², the error of a sum is at most 64·2⁻²⁴.
//
// A block covers 8 packs of columns (64 numbers of 16 bits, 32 of float32) and some rows; its 32
// groups of 8 threads take every 32nd row. Blocks write partial sums, part[p][0..1][c]. The last
// blocks to finish add them in a fixed order, so runs are reproducible on any GPU, and compute what
// follows from the sums of a column: that needs no launch of its own.
//
// The kernels move much memory and compute little. Each thread therefore issues the loads of
// several rows before it uses the first: memory throughput depends on the bytes in flight.
// Properties of a launch (ReLU mask source, whole packs) are resolved outside the loops, because a
// branch between two loads would make the second wait for the first. Passes over the same matrix
// alternate in direction: the first goes from the last row to the first, because the rows that were
// accessed last may still be in the cache.
#include "columnsums.cuh"

#define ACROSS 8 // packs per block, whose threads take every DOWN-th row

// Direction in which the blocks of a launch go through the rows.
#define FORWARDS false
#define BACKWARDS true

// Tile is a thread's columns and rows: from first to end in steps of DOWN. part is the index of the
// block's rows.
template <class T> struct Tile {
  int column, count, part;
  bool whole;
  i64 first, end;

  __device__ Tile(i64 m, int c, int rows, u64 addresses, bool backwards) {
    column = (blockIdx.x * ACROSS + threadIdx.x % ACROSS) * Pack<T>::size;
    count = c - column < Pack<T>::size ? c - column : Pack<T>::size;
    whole = c % Pack<T>::size == 0 && aligned16(addresses);
    part = backwards ? gridDim.y - 1 - blockIdx.y : blockIdx.y;
    first = (i64)part * rows + threadIdx.x / ACROSS;
    end = (i64)(part + 1) * rows < m ? (i64)(part + 1) * rows : m;
  }
};

// columns_of loads per-column numbers of the tile's columns.
template <class T> __device__ inline void columns_of(float (&dst)[Pack<T>::size], const float *src, const Tile<T> &t) {
  if (t.whole && aligned16(address(src))) {
#pragma unroll
    for (int j = 0; j < Pack<T>::size; j += 4) {
      const Four f = load4(src + t.column + j);
#pragma unroll
      for (int k = 0; k < 4; k++) dst[j + k] = f.v[k];
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < Pack<T>::size; j++) dst[j] = j < t.count ? src[t.column + j] : 0.0f;
}

// fetch_rows loads a stored pack from each of U rows.
template <class T, bool WHOLE, int U>
__device__ inline void fetch_rows(RawPack<T> (&dst)[U], const T *src, i64 at, i64 step, int count) {
#pragma unroll
  for (int u = 0; u < U; u++) dst[u] = fetch<T, WHOLE>(src + at + u * step, count);
}

// Sum is the type in which a thread accumulates.
template <class T> struct Sum {
  using type = float;
};
template <> struct Sum<float> {
  using type = double;
};

__device__ inline float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return fma(a, b, c); }

// add_moments adds U rows to a thread's sums.
template <class T, bool WHOLE, int U> __device__ inline void add_moments(typename Sum<T>::type (&s1)[Pack<T>::size],
                                                                         typename Sum<T>::type (&s2)[Pack<T>::size],
                                                                         const Pack<T> &shift, const T *x, i64 at,
                                                                         i64 step, int count) {
  using S = typename Sum<T>::type;
  RawPack<T> rows[U];
  fetch_rows<T, WHOLE>(rows, x, at, step, count);
#pragma unroll
  for (int u = 0; u < U; u++) {
    const Pack<T> v = unpack(rows[u]);
#pragma unroll
    for (int j = 0; j < Pack<T>::size; j++) {
      const S d = (S)v.v[j] - (S)shift.v[j];
      s1[j] = s1[j] + d;
      s2[j] = fused(d, d, s2[j]);
    }
  }
}

// total adds the sums of all threads and blocks. It reports whether this thread has the totals of a
// column.
template <class T> __device__ inline bool total(int &column, double &first, double &second, double *part, int c,
                                                const Tile<T> &t, const typename Sum<T>::type (&s1)[Pack<T>::size],
                                                const typename Sum<T>::type (&s2)[Pack<T>::size], u32 *arrived) {
  constexpr int COLUMNS = ACROSS * Pack<T>::size;
  __shared__ double warps[8][2][COLUMNS], totals[2][COLUMNS];
  write_part<ACROSS>(warps, part, c, t.part, s1, s2);
  column = blockIdx.x * COLUMNS + threadIdx.x;
  if (!add_parts<COLUMNS>(totals, part, c, t.part, arrived) || threadIdx.x >= COLUMNS || column >= c) return false;
  first = totals[0][threadIdx.x], second = totals[1][threadIdx.x];
  return true;
}

// moments: part = {Σ x - x[0], Σ (x - x[0])²} over the rows of each block, and from all parts and
// the first row the statistics.
template <class T> __device__ inline void moments(double *part, const T *x, i64 m, int c, int rows, u32 *arrived,
                                                  const Statistics &to) {
  constexpr int N = Pack<T>::size, U = 4;
  const Tile<T> t(m, c, rows, address(x), BACKWARDS);
  typename Sum<T>::type s1[N] = {}, s2[N] = {};
  if (t.count > 0) {
    const Pack<T> shift = load_pack(x + t.column, t.count, t.whole);
    const i64 step = (i64)DOWN * c;
    i64 i = t.first, at = i * c + t.column;
    if (t.whole) {
      for (; i + (U - 1) * DOWN < t.end; i += U * DOWN, at += U * step)
        add_moments<T, true, U>(s1, s2, shift, x, at, step, t.count);
      for (; i < t.end; i += DOWN, at += step) add_moments<T, true, 1>(s1, s2, shift, x, at, step, t.count);
    } else {
      for (; i < t.end; i += DOWN, at += step) add_moments<T, false, 1>(s1, s2, shift, x, at, step, t.count);
    }
  }
  int column;
  double sum, squares;
  if (total(column, sum, squares, part, c, t, s1, s2, arrived))
    to.finish(column, (double)to_float(x[column]), sum, squares, m);
}

// norm_given computes the affine map from given statistics.
KERNEL(256)
norm_given(const float *mean, const float *variance, const float *gamma, const float *beta, int c, double eps,
           float *mean_out, float *scale, float *shift) {
  int column = (int)thread_index();
  if (column >= c) return;
  affine(mean_out + column, scale + column, shift + column, (double)mean[column], (double)variance[column] + eps,
         gamma[column], beta[column]);
}

// apply_rows is apply for U rows of a thread.
template <class T, bool WHOLE, int U>
__device__ inline void apply_rows(T *y, u8 *mask, const T *x, const T *z, const float (&mean)[Pack<T>::size],
                                  const float (&scale)[Pack<T>::size], const float (&shift)[Pack<T>::size], i64 at,
                                  i64 step, int count, int epilogue) {
  constexpr int N = Pack<T>::size;
  RawPack<T> in[U], added[U];
  fetch_rows<T, WHOLE>(in, x, at, step, count);
  if (epilogue == WITH_ADD_RELU) fetch_rows<T, WHOLE>(added, z, at, step, count);
#pragma unroll
  for (int u = 0; u < U; u++) {
    Pack<T> v = unpack(in[u]), w;
    if (epilogue == WITH_ADD_RELU) w = unpack(added[u]);
    u32 bits = 0;
#pragma unroll
    for (int j = 0; j < N; j++) {
      float r = affine_of(v.v[j], mean[j], scale[j], shift[j]);
      if (epilogue == WITH_ADD_RELU) r = r + w.v[j];
      if (epilogue != PLAIN) r = r <= 0.0f ? 0.0f : r;
      v.v[j] = r;
      bits |= (r > 0.0f ? 1u : 0u) << j;
    }
    store_pack(y + at + u * step, v, count, WHOLE);
    if (mask) mask[(at + u * step) / N] = (u8)bits;
  }
}

// apply: y = map(x), optionally plus z, optionally followed by ReLU. mask may be null; else it gets
// one bit per number that is greater than 0, and needs whole packs.
template <class T> __device__ inline void apply(T *y, u8 *mask, const T *x, const T *z, const float *mean,
                                                const float *scale, const float *shift, i64 m, int c, int rows,
                                                int epilogue) {
  constexpr int N = Pack<T>::size, U = 4;
  const Tile<T> t(m, c, rows, address(x) | address(y) | address(z), FORWARDS);
  if (t.count <= 0) return;
  float a[N], b[N], e[N];
  columns_of(a, mean, t);
  columns_of(b, scale, t);
  columns_of(e, shift, t);
  const i64 step = (i64)DOWN * c;
  i64 i = t.first, at = i * c + t.column;
  if (!t.whole) {
#pragma unroll 1
    for (; i < t.end; i += DOWN, at += step)
      apply_rows<T, false, 1>(y, mask, x, z, a, b, e, at, step, t.count, epilogue);
    return;
  }
  if (epilogue == WITH_ADD_RELU) // two matrices: half the rows have as many bytes
    for (; i + (U / 2 - 1) * DOWN < t.end; i += U / 2 * DOWN, at += U / 2 * step)
      apply_rows<T, true, U / 2>(y, mask, x, z, a, b, e, at, step, t.count, WITH_ADD_RELU);
  else if (epilogue == WITH_RELU)
    for (; i + (U - 1) * DOWN < t.end; i += U * DOWN, at += U * step)
      apply_rows<T, true, U>(y, mask, x, z, a, b, e, at, step, t.count, WITH_RELU);
  else
    for (; i + (U - 1) * DOWN < t.end; i += U * DOWN, at += U * step)
      apply_rows<T, true, U>(y, mask, x, z, a, b, e, at, step, t.count, PLAIN);
#pragma unroll 1
  for (; i < t.end; i += DOWN, at += step) apply_rows<T, true, 1>(y, mask, x, z, a, b, e, at, step, t.count, epilogue);
}

// Map is the affine map of a thread's columns. Unless the ReLU mask is recomputed from the input,
// only the mean is needed.
template <class T> struct Map {
  float mean[Pack<T>::size], scale[Pack<T>::size], shift[Pack<T>::size];

  __device__ Map(const float *mean_of, const float *scale_of, const float *shift_of, int relu_mask, const Tile<T> &t) {
    columns_of(mean, mean_of, t);
    if (relu_mask != RELU_FROM_INPUT) return;
    columns_of(scale, scale_of, t);
    columns_of(shift, shift_of, t);
  }
};

// apply_two_rows is apply_two for U rows of a thread.
template <class T, bool WHOLE, int U> __device__ inline void apply_two_rows(T *y, u8 *mask, const T *x, const T *z,
                                                                            const Map<T> &map, const Map<T> &other,
                                                                            i64 at, i64 step, int count) {
  constexpr int N = Pack<T>::size;
  RawPack<T> in[U], added[U];
  fetch_rows<T, WHOLE>(in, x, at, step, count);
  fetch_rows<T, WHOLE>(added, z, at, step, count);
#pragma unroll
  for (int u = 0; u < U; u++) {
    Pack<T> v = unpack(in[u]), w = unpack(added[u]);
    u32 bits = 0;
#pragma unroll
    for (int j = 0; j < N; j++) {
      const float more = to_float(Number<T>::from(affine_of(w.v[j], other.mean[j], other.scale[j], other.shift[j])));
      const float r = affine_of(v.v[j], map.mean[j], map.scale[j], map.shift[j]) + more;
      v.v[j] = r <= 0.0f ? 0.0f : r;
      bits |= (v.v[j] > 0.0f ? 1u : 0u) << j;
    }
    store_pack(y + at + u * step, v, count, WHOLE);
    if (mask) mask[(at + u * step) / N] = (u8)bits;
  }
}

// apply_two is apply with a sum and ReLU, where the second summand is the map of z, rounded as it
// would be in memory.
template <class T> __device__ inline void apply_two(T *y, u8 *mask, const T *x, const T *z, const float *mean,
                                                    const float *scale, const float *shift, const float *mean_z,
                                                    const float *scale_z, const float *shift_z, i64 m, int c,
                                                    int rows) {
  constexpr int U = 4;
  const Tile<T> t(m, c, rows, address(x) | address(y) | address(z), FORWARDS);
  if (t.count <= 0) return;
  const Map<T> map(mean, scale, shift, RELU_FROM_INPUT, t), other(mean_z, scale_z, shift_z, RELU_FROM_INPUT, t);
  const i64 step = (i64)DOWN * c;
  i64 i = t.first, at = i * c + t.column;
  if (t.whole)
    for (; i + (U - 1) * DOWN < t.end; i += U * DOWN, at += U * step)
      apply_two_rows<T, true, U>(y, mask, x, z, map, other, at, step, t.count);
#pragma unroll 1
  for (; i < t.end; i += DOWN, at += step) apply_two_rows<T, false, 1>(y, mask, x, z, map, other, at, step, t.count);
}

// Gradient is the inputs of a normalisation's gradient. other may be null, or is a second summand
// of dy: the sum is rounded as dy is.
template <class T> struct Gradient {
  const T *x, *dy, *other, *y;
  const u8 *mask;
  int relu_mask;
};

// GradientRows is U rows of a Gradient.
template <class T, int U> struct GradientRows {
  RawPack<T> x[U], dy[U], other[U], y[U];
  u32 mask[U];
};

template <class T, bool WHOLE, int U>
__device__ inline void fetch_gradient_rows(GradientRows<T, U> &s, const Gradient<T> &d, i64 at, i64 step, int count) {
  fetch_rows<T, WHOLE>(s.x, d.x, at, step, count);
  fetch_rows<T, WHOLE>(s.dy, d.dy, at, step, count);
  if (d.relu_mask == RELU_FROM_OUTPUT) fetch_rows<T, WHOLE>(s.y, d.y, at, step, count);
  if (d.relu_mask == RELU_FROM_BITS) {
#pragma unroll
    for (int u = 0; u < U; u++) s.mask[u] = d.mask[(at + u * step) / Pack<T>::size];
  }
  if (d.other) fetch_rows<T, WHOLE>(s.other, d.other, at, step, count);
}

// masked_grad returns dy of row u where the ReLU is active, else 0.
template <class T, int U> __device__ inline Pack<T> masked_grad(const GradientRows<T, U> &s, int u,
                                                                const Gradient<T> &d, const Pack<T> &x,
                                                                const Map<T> &map) {
  constexpr int N = Pack<T>::size;
  Pack<T> g = unpack(s.dy[u]);
  if (d.other) {
    const Pack<T> other = unpack(s.other[u]);
#pragma unroll
    for (int j = 0; j < N; j++) g.v[j] = to_float(Number<T>::from(g.v[j] + other.v[j]));
  }
  if (d.relu_mask == RELU_FROM_OUTPUT) {
    const Pack<T> out = unpack(s.y[u]);
#pragma unroll
    for (int j = 0; j < N; j++) g.v[j] = out.v[j] > 0.0f ? g.v[j] : 0.0f;
  } else if (d.relu_mask == RELU_FROM_BITS) {
#pragma unroll
    for (int j = 0; j < N; j++) g.v[j] = s.mask[u] >> j & 1 ? g.v[j] : 0.0f;
  } else if (d.relu_mask == RELU_FROM_INPUT) {
#pragma unroll
    for (int j = 0; j < N; j++)
      g.v[j] = affine_of(x.v[j], map.mean[j], map.scale[j], map.shift[j]) > 0.0f ? g.v[j] : 0.0f;
  }
  return g;
}

// add_grads adds U rows to a thread's sums.
template <class T, bool WHOLE, int U>
__device__ inline void add_grads(typename Sum<T>::type (&s1)[Pack<T>::size], typename Sum<T>::type (&s2)[Pack<T>::size],
                                 T *dz, const Gradient<T> &d, const Map<T> &map, i64 at, i64 step, int count) {
  using S = typename Sum<T>::type;
  GradientRows<T, U> loaded;
  fetch_gradient_rows<T, WHOLE>(loaded, d, at, step, count);
#pragma unroll
  for (int u = 0; u < U; u++) {
    const Pack<T> v = unpack(loaded.x[u]);
    const Pack<T> g = masked_grad(loaded, u, d, v, map);
    if (dz) store_pack(dz + at + u * step, g, count, WHOLE);
#pragma unroll
    for (int j = 0; j < Pack<T>::size; j++) {
      s1[j] = s1[j] + (S)g.v[j];
      s2[j] = fused((S)g.v[j], (S)v.v[j] - (S)map.mean[j], s2[j]);
    }
  }
}

// sum_along sums the rows of a tile, U at a time while possible. The caller passes the ReLU mask
// source as a constant.
template <class T, bool WHOLE, int U>
__device__ inline void sum_along(typename Sum<T>::type (&s1)[Pack<T>::size], typename Sum<T>::type (&s2)[Pack<T>::size],
                                 T *dz, const Gradient<T> &d, const Map<T> &map, const Tile<T> &t, int c) {
  const i64 step = (i64)DOWN * c;
  i64 i = t.first, at = i * c + t.column;
  for (; i + (U - 1) * DOWN < t.end; i += U * DOWN, at += U * step)
    add_grads<T, WHOLE, U>(s1, s2, dz, d, map, at, step, t.count);
#pragma unroll 1
  for (; i < t.end; i += DOWN, at += step) add_grads<T, WHOLE, 1>(s1, s2, dz, d, map, at, step, t.count);
}

// grad_sums: part = {Σ g, Σ g·(x - mean)} over the rows of each block, where g is dy masked by the
// ReLU. dz may be null, or gets g. From all parts: the gradients of gamma and beta, and the factors
// of dx.
template <class T> __device__ inline void grad_sums(double *part, T *dz, const Gradient<T> &d, const float *mean,
                                                    const float *scale, const float *shift, i64 m, int c, int rows,
                                                    u32 *arrived, const GradientFactors &to) {
  constexpr int N = Pack<T>::size;
  const Tile<T> t(m, c, rows, address(d.x) | address(d.y) | address(d.dy) | address(d.other) | address(dz), BACKWARDS);
  typename Sum<T>::type s1[N] = {}, s2[N] = {};
  if (t.count > 0) {
    const Map<T> map(mean, scale, shift, d.relu_mask, t);
    if (!t.whole)
      sum_along<T, false, 1>(s1, s2, dz, d, map, t, c);
    else if (d.relu_mask == RELU_FROM_INPUT)
      sum_along<T, true, 4>(s1, s2, dz, Gradient<T>{d.x, d.dy, nullptr, nullptr, nullptr, RELU_FROM_INPUT}, map, t, c);
    else if (d.relu_mask == RELU_FROM_BITS && d.other)
      sum_along<T, true, 4>(s1, s2, dz, Gradient<T>{d.x, d.dy, d.other, nullptr, d.mask, RELU_FROM_BITS}, map, t, c);
    else if (d.relu_mask == RELU_FROM_BITS)
      sum_along<T, true, 4>(s1, s2, dz, Gradient<T>{d.x, d.dy, nullptr, nullptr, d.mask, RELU_FROM_BITS}, map, t, c);
    else if (d.relu_mask == RELU_NONE)
      sum_along<T, true, 4>(s1, s2, dz, Gradient<T>{d.x, d.dy, nullptr, nullptr, nullptr, RELU_NONE}, map, t, c);
    else
      sum_along<T, true, 2>(s1, s2, dz, Gradient<T>{d.x, d.dy, d.other, d.y, nullptr, RELU_FROM_OUTPUT}, map, t, c);
  }
  int column;
  double g, products;
  if (total(column, g, products, part, c, t, s1, s2, arrived)) to.finish(column, g, products, m);
}

// Factors holds the factors of a thread's columns in dx = a·g + ((x-mean)·b + e).
template <class T> struct Factors {
  float a[Pack<T>::size], b[Pack<T>::size], e[Pack<T>::size];

  __device__ Factors(const float *a_of, const float *b_of, const float *e_of, const Tile<T> &t) {
    columns_of(a, a_of, t);
    columns_of(b, b_of, t);
    columns_of(e, e_of, t);
  }
};

// apply_grads is grad_apply for U rows of a thread.
template <class T, bool WHOLE, int U> __device__ inline void apply_grads(T *dx, const Gradient<T> &d, const Map<T> &map,
                                                                         const Factors<T> &f, i64 at, i64 step,
                                                                         int count) {
  GradientRows<T, U> loaded;
  fetch_gradient_rows<T, WHOLE>(loaded, d, at, step, count);
#pragma unroll
  for (int u = 0; u < U; u++) {
    Pack<T> v = unpack(loaded.x[u]);
    const Pack<T> g = masked_grad(loaded, u, d, v, map);
#pragma unroll
    for (int j = 0; j < Pack<T>::size; j++) v.v[j] = f.a[j] * g.v[j] + ((v.v[j] - map.mean[j]) * f.b[j] + f.e[j]);
    store_pack(dx + at + u * step, v, count, WHOLE);
  }
}

// apply_along is grad_apply for a tile. See sum_along.
template <class T, bool WHOLE, int U> __device__ inline void apply_along(T *dx, const Gradient<T> &d, const Map<T> &map,
                                                                         const Factors<T> &f, const Tile<T> &t, int c) {
  const i64 step = (i64)DOWN * c;
  i64 i = t.first, at = i * c + t.column;
  for (; i + (U - 1) * DOWN < t.end; i += U * DOWN, at += U * step)
    apply_grads<T, WHOLE, U>(dx, d, map, f, at, step, t.count);
#pragma unroll 1
  for (; i < t.end; i += DOWN, at += step) apply_grads<T, WHOLE, 1>(dx, d, map, f, at, step, t.count);
}

// grad_apply: dx = a·g + ((x-mean)·b + e).
template <class T> __device__ inline void grad_apply(T *dx, const Gradient<T> &d, const float *mean, const float *scale,
                                                     const float *shift, const float *a, const float *b, const float *e,
                                                     i64 m, int c, int rows) {
  const Tile<T> t(m, c, rows, address(d.x) | address(d.y) | address(d.dy) | address(dx), FORWARDS);
  if (t.count <= 0) return;
  const Map<T> map(mean, scale, shift, d.relu_mask, t);
  const Factors<T> f(a, b, e, t);
  if (!t.whole)
    apply_along<T, false, 1>(dx, d, map, f, t, c);
  else if (d.relu_mask == RELU_NONE)
    apply_along<T, true, 4>(dx, Gradient<T>{d.x, d.dy, nullptr, nullptr, nullptr, RELU_NONE}, map, f, t, c);
  else if (d.relu_mask == RELU_FROM_INPUT)
    apply_along<T, true, 4>(dx, Gradient<T>{d.x, d.dy, nullptr, nullptr, nullptr, RELU_FROM_INPUT}, map, f, t, c);
  else if (d.relu_mask == RELU_FROM_BITS)
    apply_along<T, true, 4>(dx, Gradient<T>{d.x, d.dy, nullptr, nullptr, d.mask, RELU_FROM_BITS}, map, f, t, c);
  else
    apply_along<T, true, 2>(dx, Gradient<T>{d.x, d.dy, nullptr, d.y, nullptr, RELU_FROM_OUTPUT}, map, f, t, c);
}

#define NORM_KERNELS(T, name)                                                                                          \
  KERNEL_OCCUPANCY(256, 3)                                                                                             \
  norm_moments_##name(double *part, u32 *arrived, const T *x, const float *gamma, const float *beta, i64 m, int c,     \
                      int rows, double eps, float *mean, float *variance, float *scale, float *shift) {                \
    moments<T>(part, x, m, c, rows, arrived, Statistics{gamma, beta, eps, mean, variance, scale, shift});              \
  }                                                                                                                    \
  KERNEL_OCCUPANCY(256, 3)                                                                                             \
  norm_apply_##name(T *y, u8 *mask, const T *x, const T *z, const float *mean, const float *scale, const float *shift, \
                    i64 m, int c, int rows, int epilogue) {                                                            \
    apply<T>(y, mask, x, z, mean, scale, shift, m, c, rows, epilogue);                                                 \
  }                                                                                                                    \
  KERNEL_OCCUPANCY(256, 2)                                                                                             \
  norm_apply_two_##name(T *y, u8 *mask, const T *x, const T *z, const float *mean, const float *scale,                 \
                        const float *shift, const float *mean_z, const float *scale_z, const float *shift_z, i64 m,    \
                        int c, int rows) {                                                                             \
    apply_two<T>(y, mask, x, z, mean, scale, shift, mean_z, scale_z, shift_z, m, c, rows);                             \
  }                                                                                                                    \
  KERNEL_OCCUPANCY(256, 2)                                                                                             \
  norm_grad_sums_##name(double *part, u32 *arrived, T *dz, const T *x, const T *dy, const T *other, const T *y,        \
                        const u8 *mask, const float *mean, const float *scale, const float *shift, i64 m, int c,       \
                        int rows, int relu_mask, const float *gamma, const float *variance, double eps,                \
                        float *dgamma, float *dbeta, float *a, float *b, float *e) {                                   \
    grad_sums<T>(part, dz, Gradient<T>{x, dy, other, y, mask, relu_mask}, mean, scale, shift, m, c, rows, arrived,     \
                 GradientFactors{gamma, variance, eps, dgamma, dbeta, a, b, e});                                       \
  }                                                                                                                    \
  KERNEL_OCCUPANCY(256, 2)                                                                                             \
  norm_grad_apply_##name(T *dx, const T *x, const T *dy, const T *y, const u8 *mask, const float *mean,                \
                         const float *scale, const float *shift, const float *a, const float *b, const float *e,       \
                         i64 m, int c, int rows, int relu_mask) {                                                      \
    grad_apply<T>(dx, Gradient<T>{x, dy, nullptr, y, mask, relu_mask}, mean, scale, shift, a, b, e, m, c, rows);       \
  }

NORM_KERNELS(float, f32)
NORM_KERNELS(Half, f16)
NORM_KERNELS(BFloat, bf16)
