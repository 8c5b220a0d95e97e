// Rotary position embeddings, causal attention and its gradient, in float32. Attention also reads and
// writes qkv, y and their gradients of 16 bits: for widths of heads and GPUs without kernels of
// attention_mma.cu.
//
// Rows of qkv hold queries, keys and values of all heads. A unit is a head of a window. Blocks work
// on tiles of 64 queries and 64 keys. To the last bit, for query i of a unit:
//
//   s_j = Σ q_i·(k_j/√h), the factor as two float32 and the product rounded, a chain of fma
//
// and for tiles of keys in ascending order, with a running maximum m and sum l,
//
//   m' = max(m, max s_j),  f = exp(m - m'),  e_j = exp(s_j - m'),  l' = f·l + Σ e_j,
//   o' = f·o + Σ e_j·v_j, a chain
//
// and in the end y = o/l, lse = m + log l. The backward pass has p_j = exp(s_j - m)/l with the m and l
// of the row, which it computes again because they keep digits that lse loses, D = Σ dy·y,
// g_j = p_j·(Σ dy·v_j - D), and
//
//   dq = Σ g_j·k_j/√h  (attention_grad_q),  dk_j = Σ_i g_ij·q_i/√h,  dv_j = Σ_i p_ij·dy_i
//   (attention_grad_kv)
//
// Each output is a chain of one thread over ascending tiles, so runs are reproducible. A block has at
// most 64 columns of the outputs: wider heads have several blocks, which compute the scores again.
#include "exponential.cuh"
#include "half.cuh"

#define AT_TILE 64 // kernels.attentionTile
#define AT_EACH 4 // rows and columns of a tile for each thread
#define AT_LINE (AT_TILE / AT_EACH) // threads of a row
#define AT_INNER 32 // numbers of a row in shared memory while scores are computed
#define AT_INNER_STRIDE (AT_INNER + 1) // so that the rows of a column lie in different banks
#define AT_SHARE_STRIDE (AT_TILE + 1)
#define AT_COLUMN_STRIDE (2 * AT_INNER_STRIDE)

__device__ inline float minus_infinity() { return __uint_as_float(0xff800000u); }

// exp_of returns e^x for x ≤ 0, with an error of a few units in the last place. NaN stays NaN.
__device__ inline float exp_of(float x) {
  if (x < -104.0f) return 0.0f;
  const float shift = 0x1.8p23f; // adding it rounds to an integer
  const float n = fmaf(x, 0x1.715476p0f, shift) - shift;
  // x - n·ln 2 in two steps: the first constant has few bits, so that its product is exact
  float r = fmaf(n, -0x1.62e4p-1f, x);
  r = fmaf(n, -0x1.7f7d1cp-20f, r);
  float p = 1.0f / 5040;
  p = fmaf(p, r, 1.0f / 720);
  p = fmaf(p, r, 1.0f / 120);
  p = fmaf(p, r, 1.0f / 24);
  p = fmaf(p, r, 1.0f / 6);
  p = fmaf(p, r, 0.5f);
  p = fmaf(p, r, 1.0f);
  p = fmaf(p, r, 1.0f);
  if (x != x) return x;
  const int k = (int)n, half = k / 2; // 2^k may be too small for a float32
  return p * __uint_as_float((u32)(127 + half) << 23) * __uint_as_float((u32)(127 + k - half) << 23);
}

// Scale is a factor of more digits than a float32 has, as a sum of two: no arithmetic in float64, which
// some GPUs do slowly.
struct Scale {
  float high, low;

  __device__ float operator()(float v) const { return fmaf(v, high, v * low); }
};

// AttentionUnit is the matrices of a head of a window.
template <class T> struct AttentionUnit {
  const T *q, *k, *v;     // rows of qkv
  i64 stride, row;        // numbers between rows of qkv, and of y
  i64 first;              // of its numbers in y
  i64 number;

  __device__ AttentionUnit(const T *qkv, i64 unit, int t, int heads, int h) {
    row = (i64)heads * h;
    stride = 3 * row;
    const i64 window = unit / heads, head = unit - window * heads;
    first = window * t * row + head * h;
    q = qkv + window * t * stride + head * h;
    k = q + row;
    v = k + row;
    number = unit;
  }
};

// AttentionPlace is what a block and a thread of it work on.
struct AttentionPlace {
  i64 unit;
  int tile, column; // of the block: the tile, and its first column of the outputs
  int x, y;         // of the thread: columns x + 16·j and rows 4·y + i of a tile, i, j < 4

  __device__ AttentionPlace(int tiles) {
    unit = (i64)blockIdx.x / tiles;
    tile = (int)((i64)blockIdx.x - unit * tiles);
    column = (int)blockIdx.y * AT_TILE;
    x = threadIdx.x % AT_LINE;
    y = threadIdx.x / AT_LINE;
  }
};

// load_inner copies AT_INNER columns of up to 64 rows to shared memory, if SCALED times scale. What is
// outside becomes 0.
template <bool SCALED, class T>
__device__ inline void load_inner(float *to, const T *from, i64 stride, int rows, int columns, Scale scale) {
#pragma unroll 4
  for (int i = threadIdx.x; i < AT_TILE * AT_INNER; i += AT_LINE * AT_LINE) {
    const int r = i / AT_INNER, c = i % AT_INNER;
    const float v = r < rows && c < columns ? to_float(from[r * stride + c]) : 0.0f;
    to[r * AT_INNER_STRIDE + c] = SCALED ? scale(v) : v;
  }
}

// load_columns copies the columns of a block's outputs of up to 64 rows to shared memory.
template <class T>
__device__ inline void load_columns(float *to, const T *from, i64 stride, int rows, int columns) {
#pragma unroll 4
  for (int i = threadIdx.x; i < AT_TILE * AT_TILE; i += AT_LINE * AT_LINE) {
    const int r = i / AT_TILE, c = i % AT_TILE;
    to[r * AT_COLUMN_STRIDE + c] = r < rows && c < columns ? to_float(from[r * stride + c]) : 0.0f;
  }
}

// products: s = the products of rows of a with rows of b, if SCALED times scale, over h columns. tiles is
// shared memory for load_inner of both.
template <bool SCALED, class T>
__device__ inline void products(float (&s)[AT_EACH][AT_EACH], float *tiles, const T *a, i64 stride_a, int rows_a,
                                const T *b, i64 stride_b, int rows_b, int h, Scale scale,
                                const AttentionPlace &p) {
  float *left = tiles, *right = tiles + AT_TILE * AT_INNER_STRIDE;
#pragma unroll
  for (int i = 0; i < AT_EACH; i++)
#pragma unroll
    for (int j = 0; j < AT_EACH; j++) s[i][j] = 0.0f;
  for (int c = 0; c < h; c += AT_INNER) {
    const int count = h - c < AT_INNER ? h - c : AT_INNER;
    __syncthreads();
    load_inner<false>(left, a + c, stride_a, rows_a, count, scale);
    load_inner<SCALED>(right, b + c, stride_b, rows_b, count, scale);
    __syncthreads();
#pragma unroll 2
    for (int k = 0; k < count; k++) {
      float x[AT_EACH], y[AT_EACH];
#pragma unroll
      for (int i = 0; i < AT_EACH; i++) x[i] = left[(p.y * AT_EACH + i) * AT_INNER_STRIDE + k];
#pragma unroll
      for (int j = 0; j < AT_EACH; j++) y[j] = right[(p.x + AT_LINE * j) * AT_INNER_STRIDE + k];
#pragma unroll
      for (int i = 0; i < AT_EACH; i++)
#pragma unroll
        for (int j = 0; j < AT_EACH; j++) s[i][j] = fmaf(x[i], y[j], s[i][j]);
    }
  }
}

// add_products: o += Σ_k share[row][k]·columns[k] over count rows of columns. TRANSPOSED reads
// share[k][row].
template <bool TRANSPOSED>
__device__ inline void add_products(float (&o)[AT_EACH][AT_EACH], const float *share, const float *columns, int count,
                                    int width, const AttentionPlace &p) {
#pragma unroll 2
  for (int k = 0; k < count; k++) {
    float x[AT_EACH];
#pragma unroll
    for (int i = 0; i < AT_EACH; i++) {
      const int row = p.y * AT_EACH + i;
      x[i] = share[TRANSPOSED ? k * AT_SHARE_STRIDE + row : row * AT_SHARE_STRIDE + k];
    }
#pragma unroll
    for (int j = 0; j < AT_EACH; j++) {
      if (AT_LINE * j >= width) break; // the same for all threads
      const float y = columns[k * AT_COLUMN_STRIDE + p.x + AT_LINE * j];
#pragma unroll
      for (int i = 0; i < AT_EACH; i++) o[i][j] = fmaf(x[i], y, o[i][j]);
    }
  }
}

// put writes the shares of a tile to shared memory.
__device__ inline void put(float *share, const float (&s)[AT_EACH][AT_EACH], const AttentionPlace &p) {
#pragma unroll
  for (int i = 0; i < AT_EACH; i++)
#pragma unroll
    for (int j = 0; j < AT_EACH; j++) share[(p.y * AT_EACH + i) * AT_SHARE_STRIDE + p.x + AT_LINE * j] = s[i][j];
}

// line_maximum and line_sum combine numbers of the 16 threads of a row.
__device__ inline float line_maximum(float v) {
#pragma unroll
  for (int half = AT_LINE / 2; half > 0; half /= 2) {
    const float other = __shfl_xor_sync(ALL_LANES, v, half, AT_LINE);
    if (other > v) v = other;
  }
  return v;
}

__device__ inline float line_sum(float v) {
#pragma unroll
  for (int half = AT_LINE / 2; half > 0; half /= 2) v = v + __shfl_xor_sync(ALL_LANES, v, half, AT_LINE);
  return v;
}

// AttentionRows is the running maximum and sum of the rows of a thread.
struct AttentionRows {
  float top[AT_EACH], sum[AT_EACH];

  __device__ AttentionRows() {
#pragma unroll
    for (int i = 0; i < AT_EACH; i++) {
      top[i] = minus_infinity();
      sum[i] = 0.0f;
    }
  }

  // add replaces scores by their exponentials, those of later tokens by 0, and returns the factors of
  // what was added before. diagonal says that the tile has later tokens.
  __device__ void add(float (&s)[AT_EACH][AT_EACH], float (&factor)[AT_EACH], bool diagonal, const AttentionPlace &p) {
#pragma unroll
    for (int i = 0; i < AT_EACH; i++) {
      float most = top[i];
#pragma unroll
      for (int j = 0; j < AT_EACH; j++)
        if (!(diagonal && p.x + AT_LINE * j > p.y * AT_EACH + i) && s[i][j] > most) most = s[i][j];
      most = line_maximum(most);
      factor[i] = exp_of(top[i] - most);
      top[i] = most;
      float sums = 0.0f;
#pragma unroll
      for (int j = 0; j < AT_EACH; j++) {
        s[i][j] = diagonal && p.x + AT_LINE * j > p.y * AT_EACH + i ? 0.0f : exp_of(s[i][j] - most);
        sums = sums + s[i][j];
      }
      sum[i] = factor[i] * sum[i] + line_sum(sums);
    }
  }
};

// rows_of returns how many rows a tile has.
__device__ inline int rows_of(int tile, int t) { return t - tile * AT_TILE < AT_TILE ? t - tile * AT_TILE : AT_TILE; }

// attention: y and lse. blockIdx.x is the unit and the tile of queries.
template <class T>
__device__ inline void attention(T *y, float *lse, const T *qkv, int t, int tiles, int heads, int h, float high, float low) {
  __shared__ float inner[2 * AT_TILE * AT_INNER_STRIDE], share[AT_TILE * AT_SHARE_STRIDE];
  const Scale scale{high, low};
  const AttentionPlace p(tiles);
  const AttentionUnit<T> u(qkv, p.unit, t, heads, h);
  const int rows = rows_of(p.tile, t), width = h - p.column < AT_TILE ? h - p.column : AT_TILE;
  AttentionRows running;
  float o[AT_EACH][AT_EACH] = {};
  for (int tile = 0; tile <= p.tile; tile++) {
    const int keys = rows_of(tile, t);
    float s[AT_EACH][AT_EACH], factor[AT_EACH];
    products<true>(s, inner, u.q + (i64)p.tile * AT_TILE * u.stride, u.stride, rows,
                   u.k + (i64)tile * AT_TILE * u.stride, u.stride, keys, h, scale, p);
    running.add(s, factor, tile == p.tile, p);
    __syncthreads();
    put(share, s, p);
    load_columns(inner, u.v + (i64)tile * AT_TILE * u.stride + p.column, u.stride, keys, width);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < AT_EACH; i++)
#pragma unroll
      for (int j = 0; j < AT_EACH; j++) o[i][j] = factor[i] * o[i][j];
    add_products<false>(o, share, inner, keys, width, p);
  }
#pragma unroll
  for (int i = 0; i < AT_EACH; i++) {
    const int r = p.y * AT_EACH + i;
    const i64 row = (i64)p.tile * AT_TILE + r;
    if (r >= rows) continue;
#pragma unroll
    for (int j = 0; j < AT_EACH; j++)
      if (p.x + AT_LINE * j < width) y[u.first + row * u.row + p.column + p.x + AT_LINE * j] = Number<T>::from(o[i][j] / running.sum[i]);
    if (p.column == 0 && p.x == 0)
      lse[u.number * t + row] = (float)((double)running.top[i] + logarithm((double)running.sum[i]));
  }
}

// attention_grad_q: dq, and stats = {m, 1/l, D} of each row. blockIdx.x is the unit and the tile of
// queries.
template <class T>
__device__ inline void attention_grad_q(T *dqkv, float *stats, const T *qkv, const T *y, const T *dy, int t, int tiles,
                                        int heads, int h, float high, float low) {
  __shared__ float inner[2 * AT_TILE * AT_INNER_STRIDE], share[AT_TILE * AT_SHARE_STRIDE], along[AT_TILE];
  const Scale scale{high, low};
  const AttentionPlace p(tiles);
  const AttentionUnit<T> u(qkv, p.unit, t, heads, h);
  const int rows = rows_of(p.tile, t), width = h - p.column < AT_TILE ? h - p.column : AT_TILE;
  const i64 first = u.first + (i64)p.tile * AT_TILE * u.row;
  const T *q = u.q + (i64)p.tile * AT_TILE * u.stride, *slopes = dy + first;
  if ((int)threadIdx.x < AT_TILE) {
    float d = 0.0f;
    if ((int)threadIdx.x < rows)
      for (int c = 0; c < h; c++)
        d = fmaf(to_float(slopes[threadIdx.x * u.row + c]), to_float(y[first + threadIdx.x * u.row + c]), d);
    along[threadIdx.x] = d;
  }
  AttentionRows running;
  float s[AT_EACH][AT_EACH], unused[AT_EACH];
  for (int tile = 0; tile <= p.tile; tile++) {
    products<true>(s, inner, q, u.stride, rows, u.k + (i64)tile * AT_TILE * u.stride, u.stride, rows_of(tile, t), h,
                   scale, p);
    running.add(s, unused, tile == p.tile, p);
  }
  float o[AT_EACH][AT_EACH] = {}, inverse[AT_EACH];
#pragma unroll
  for (int i = 0; i < AT_EACH; i++) {
    const int r = p.y * AT_EACH + i;
    inverse[i] = 1.0f / running.sum[i];
    if (r < rows && p.column == 0 && p.x == 0) {
      float *to = stats + 3 * (u.number * t + (i64)p.tile * AT_TILE + r);
      to[0] = running.top[i];
      to[1] = inverse[i];
      to[2] = along[r];
    }
  }
  for (int tile = 0; tile <= p.tile; tile++) {
    const int keys = rows_of(tile, t);
    const i64 from = (i64)tile * AT_TILE * u.stride;
    if (p.tile > 0) { // else s has the exponentials of the only tile
      products<true>(s, inner, q, u.stride, rows, u.k + from, u.stride, keys, h, scale, p);
#pragma unroll
      for (int i = 0; i < AT_EACH; i++)
#pragma unroll
        for (int j = 0; j < AT_EACH; j++)
          s[i][j] = tile == p.tile && p.x + AT_LINE * j > p.y * AT_EACH + i ? 0.0f : exp_of(s[i][j] - running.top[i]);
    }
    float d[AT_EACH][AT_EACH];
    products<false>(d, inner, slopes, u.row, rows, u.v + from, u.stride, keys, h, scale, p);
#pragma unroll
    for (int i = 0; i < AT_EACH; i++)
#pragma unroll
      for (int j = 0; j < AT_EACH; j++)
        d[i][j] = tile == p.tile && p.x + AT_LINE * j > p.y * AT_EACH + i
                      ? 0.0f
                      : (s[i][j] * inverse[i]) * (d[i][j] - along[p.y * AT_EACH + i]);
    __syncthreads();
    put(share, d, p);
    load_columns(inner, u.k + from + p.column, u.stride, keys, width);
    __syncthreads();
    add_products<false>(o, share, inner, keys, width, p);
  }
  T *dq = dqkv + (u.q - qkv) + (i64)p.tile * AT_TILE * u.stride + p.column;
#pragma unroll
  for (int i = 0; i < AT_EACH; i++)
#pragma unroll
    for (int j = 0; j < AT_EACH; j++) {
      const int r = p.y * AT_EACH + i, c = p.x + AT_LINE * j;
      if (r < rows && c < width) dq[r * u.stride + c] = Number<T>::from(scale(o[i][j]));
    }
}

// attention_grad_kv: dk and dv, from the stats of attention_grad_q. blockIdx.x is the unit and the
// tile of keys.
template <class T>
__device__ inline void attention_grad_kv(T *dqkv, const float *stats, const T *qkv, const T *dy, int t, int tiles,
                                         int heads, int h, float high, float low) {
  __shared__ float inner[2 * AT_TILE * AT_INNER_STRIDE], share[AT_TILE * AT_SHARE_STRIDE], of_row[3 * AT_TILE];
  const Scale scale{high, low};
  const AttentionPlace p(tiles);
  const AttentionUnit<T> u(qkv, p.unit, t, heads, h);
  const int keys = rows_of(p.tile, t), width = h - p.column < AT_TILE ? h - p.column : AT_TILE;
  const i64 from = (i64)p.tile * AT_TILE * u.stride;
  float dk[AT_EACH][AT_EACH] = {}, dv[AT_EACH][AT_EACH] = {};
  for (int tile = p.tile; tile < tiles; tile++) {
    const int rows = rows_of(tile, t);
    const T *q = u.q + (i64)tile * AT_TILE * u.stride, *slopes = dy + u.first + (i64)tile * AT_TILE * u.row;
    float s[AT_EACH][AT_EACH], d[AT_EACH][AT_EACH];
    products<true>(s, inner, q, u.stride, rows, u.k + from, u.stride, keys, h, scale, p);
    __syncthreads();
    for (int i = threadIdx.x; i < 3 * rows; i += AT_LINE * AT_LINE)
      of_row[i] = stats[3 * (u.number * t + (i64)tile * AT_TILE) + i];
    load_columns(inner, slopes + p.column, u.row, rows, width);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < AT_EACH; i++) {
      const int r = p.y * AT_EACH + i;
#pragma unroll
      for (int j = 0; j < AT_EACH; j++) {
        const bool counts = r < rows && !(tile == p.tile && p.x + AT_LINE * j > r);
        s[i][j] = counts ? exp_of(s[i][j] - of_row[3 * r]) * of_row[3 * r + 1] : 0.0f;
      }
    }
    put(share, s, p);
    __syncthreads();
    add_products<true>(dv, share, inner, rows, width, p);
    products<false>(d, inner, slopes, u.row, rows, u.v + from, u.stride, keys, h, scale, p);
#pragma unroll
    for (int i = 0; i < AT_EACH; i++) {
      const int r = p.y * AT_EACH + i;
#pragma unroll
      for (int j = 0; j < AT_EACH; j++) {
        const bool counts = r < rows && !(tile == p.tile && p.x + AT_LINE * j > r);
        // its share, which no other thread reads after the barriers of products
        d[i][j] = counts ? share[r * AT_SHARE_STRIDE + p.x + AT_LINE * j] * (d[i][j] - of_row[3 * r + 2]) : 0.0f;
      }
    }
    __syncthreads();
    put(share, d, p);
    load_columns(inner, q + p.column, u.stride, rows, width);
    __syncthreads();
    add_products<true>(dk, share, inner, rows, width, p);
  }
  T *to = dqkv + (u.k - qkv) + from + p.column;
#pragma unroll
  for (int i = 0; i < AT_EACH; i++)
#pragma unroll
    for (int j = 0; j < AT_EACH; j++) {
      const int r = p.y * AT_EACH + i, c = p.x + AT_LINE * j;
      if (r >= keys || c >= width) continue;
      to[r * u.stride + c] = Number<T>::from(scale(dk[i][j]));
      to[r * u.stride + u.row + c] = Number<T>::from(dv[i][j]);
    }
}

#define ATTENTION_KERNELS(T, suffix)                                                                                   \
  KERNEL_OCCUPANCY(256, 2)                                                                                             \
  attention_##suffix(T *y, float *lse, const T *qkv, int t, int tiles, int heads, int h, float high, float low) {      \
    attention<T>(y, lse, qkv, t, tiles, heads, h, high, low);                                                          \
  }                                                                                                                    \
  KERNEL_OCCUPANCY(256, 2)                                                                                             \
  attention_grad_q_##suffix(T *dqkv, float *stats, const T *qkv, const T *y, const T *dy, int t, int tiles, int heads, \
                            int h, float high, float low) {                                                            \
    attention_grad_q<T>(dqkv, stats, qkv, y, dy, t, tiles, heads, h, high, low);                                       \
  }                                                                                                                    \
  KERNEL_OCCUPANCY(256, 2)                                                                                             \
  attention_grad_kv_##suffix(T *dqkv, const float *stats, const T *qkv, const T *dy, int t, int tiles, int heads,      \
                             int h, float high, float low) {                                                           \
    attention_grad_kv<T>(dqkv, stats, qkv, dy, t, tiles, heads, h, high, low);                                         \
  }

ATTENTION_KERNELS(float, f32)
ATTENTION_KERNELS(Half, f16)
ATTENTION_KERNELS(BFloat, bf16)

// rope_table: cosine and sine of the angles place·θ^(-2j/h), computed in float64 and rounded once.
// The first place is *at, or 0 without an at.
KERNEL(256) rope_table(float *table, const float *at, int t, int pairs, double theta) {
  const i64 i = thread_index();
  if (i >= (i64)t * pairs) return;
  const i64 place = i / pairs;
  const double j = (double)(i - place * pairs), first = at ? (double)*at : 0.0;
  const double angle = ((double)place + first) * pow(theta, -j / (double)pairs);
  table[2 * i] = (float)cos(angle);
  table[2 * i + 1] = (float)sin(angle);
}

// rope turns the pairs j and j+h/2 of queries and keys by the angles of a table for the t places of a
// window, times sign, and copies the values. y may be x.
KERNEL(256)
rope(float *y, const float *x, const float *table, i64 m, int t, int heads, int pairs, float sign) {
  const i64 i = thread_index(), each = 3 * (i64)heads * pairs;
  if (i >= m * each) return;
  const i64 row = i / each, rest = i - row * each, head = rest / pairs;
  const int j = (int)(rest - head * pairs);
  const i64 at = (row * 3 * heads + head) * 2 * pairs + j;
  const float a = x[at], b = x[at + pairs];
  if (head >= 2 * heads) {
    y[at] = a;
    y[at + pairs] = b;
    return;
  }
  const float *angle = table + 2 * (row % t * pairs + j);
  const float c = angle[0], s = sign * angle[1];
  y[at] = a * c - b * s;
  y[at + pairs] = b * c + a * s;
}

// place_of returns the place of the first of m rows in a window of so many places, or -1.
__device__ inline int place_of(const float *at, int m, int places) {
  const float first = *at;
  return first >= 0.0f && first <= (float)(places - m) ? (int)first : -1;
}

// attention_cache: moved is the cache with the keys, times scale, and the values of m new rows.
KERNEL(256)
attention_cache(float *moved, const float *cache, const float *qkv, const float *at, int m, int places, int heads,
                int h, float high, float low) {
  const i64 i = thread_index(), width = (i64)heads * h;
  if (i >= places * 2 * width) return;
  const i64 row = i / (2 * width), column = i - row * 2 * width;
  const int first = place_of(at, m, places);
  float v = cache[i];
  if (first >= 0 && row >= first && row < first + m) {
    v = qkv[(row - first) * 3 * width + width + column];
    if (column < width) v = Scale{high, low}(v);
  }
  moved[i] = v;
}

#define AT_STEP_THREADS 128

// step_combined returns the sum, or the maximum, of v over the threads of the block.
template <bool SUM> __device__ inline float step_combined(float v) {
  __shared__ float all[AT_STEP_THREADS];
  __syncthreads();
  all[threadIdx.x] = v;
  for (int half = AT_STEP_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.x >= half) continue;
    const float a = all[threadIdx.x], b = all[threadIdx.x + half];
    all[threadIdx.x] = SUM ? a + b : b > a ? b : a;
  }
  __syncthreads();
  return all[0];
}

// attention_step: y of m rows over the cache. blockIdx.x is the row and the head.
KERNEL(AT_STEP_THREADS)
attention_step(float *y, float *scores, const float *qkv, const float *cache, const float *at, int m, int places,
               int heads, int h) {
  const i64 width = (i64)heads * h;
  const int row = (int)(blockIdx.x / heads), head = (int)(blockIdx.x % heads), first = place_of(at, m, places);
  const int keys = first < 0 ? 0 : first + row + 1;
  const float *q = qkv + row * 3 * width + head * h, *k = cache + head * h;
  float *s = scores + (i64)blockIdx.x * places, most = minus_infinity(), sum = 0.0f;
  for (int j = (int)threadIdx.x; j < keys; j += AT_STEP_THREADS) {
    float v = 0.0f;
    for (int c = 0; c < h; c++) v = fmaf(q[c], k[j * 2 * width + c], v);
    s[j] = v;
    if (v > most) most = v;
  }
  most = step_combined<false>(most);
  for (int j = (int)threadIdx.x; j < keys; j += AT_STEP_THREADS) {
    s[j] = exp_of(s[j] - most);
    sum = sum + s[j];
  }
  sum = step_combined<true>(sum);
  __syncthreads();
  for (int c = (int)threadIdx.x; c < h; c += AT_STEP_THREADS) {
    float o = 0.0f;
    for (int j = 0; j < keys; j++) o = fmaf(s[j], k[j * 2 * width + width + c], o);
    y[row * width + head * h + c] = keys > 0 ? o / sum : quiet_nan();
  }
}
