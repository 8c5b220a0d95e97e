// Causal attention and its gradient on tensor cores, with factors of 16 bits. qkv, y and their
// gradients are rows as in attention.cu, of heads of at most 128 numbers, a multiple of 8. With
// c = log2(e)/√h, for query i of a unit:
//
//   s_j = Σ q_i·k_j on tensor cores, and for tiles of keys in ascending order, with a maximum m and sum l,
//   m' = max(m, max s_j),  f = 2^(c·m - c·m'),  e_j = 2^(c·s_j - c·m'),  l' = f·l + Σ e_j,
//   o' = f·o + Σ e_j·v_j on tensor cores, e_j rounded to 16 bits
//
// and in the end y = o/l, lse = m/√h + log l. The backward pass has p_j = 2^(c·s_j - lse·log2(e)),
// D = Σ dy·y, g_j = p_j·(Σ dy·v_j - D), and
//
//   dq = Σ g_j·k_j/√h  (attention_mma_grad_q),  dk_j = Σ_i g_ij·q_i/√h,  dv_j = Σ_i p_ij·dy_i
//   (attention_mma_grad_kv), where p and g are rounded to 16 bits as factors.
//
// All sums are float32. An output is a chain of one warp over ascending tiles, so runs are
// reproducible. Scores stay in registers: the accumulators of one product are the first factor of
// the next. A block has 4 warps, each with 16 or 32 rows of the outputs; tiles of the other side
// pass through shared memory, where the next tile arrives during the products of the current one.
#include "exponential.cuh"
#include "mma.cuh"
#include "power.cuh"

#define AM_THREADS 128 // kernels.mmaThreads
#define AM_WARPS (AM_THREADS / WARP)

#if defined(FSPDA_HOST) || __CUDA_ARCH__ >= 800

#define LOG2_E 0x1.715476p0f

__device__ inline float below_all() { return __uint_as_float(0xff800000u); }

// MmaPlan is the sizes of a block for heads of at most W numbers.
template <int W> struct MmaPlan {
  static constexpr int tile = W > 64 ? 32 : 64;      // rows that pass through: kernels.mmaTile
  static constexpr int parts = 2;                    // of 16 rows each of a warp, forward
  static constexpr int parts_grad = W > 64 ? 1 : 2;  // the same, backward
};

// place returns where the pack of 8 numbers at a column lies in a tile with rows of W numbers. The
// order of packs differs from row to row, so that eight rows of a column lie in different banks.
template <int W> __device__ inline int place(int row, int pack) {
  constexpr int packs = W / 8;
  const int turn = packs < 8 ? row / (8 / packs) % packs : row % 8;
  return (row * packs + (pack ^ turn)) * 8;
}

// copy_rows copies ROWS rows of h numbers to a tile, asynchronously. What is outside becomes 0.
template <class T, int W, int ROWS>
__device__ inline void copy_rows(T *tile, const T *from, int stride, int rows, int h) {
  constexpr int packs = W / 8, step = AM_THREADS / packs; // a multiple of 8: the order of packs is the same
  const int first = threadIdx.x / packs, p = threadIdx.x % packs;
  T *to = tile + place<W>(first, p);
  const T *at = from + (i64)first * stride + 8 * p;
#pragma unroll
  for (int r = 0; r < ROWS; r += step) {
    const bool there = first + r < rows && 8 * p < h;
    copy_async(to + r * W, there ? at + (i64)r * stride : from, there);
  }
}

// Fragments of a product of matrices of 16 bits, from tiles in shared memory: the first factor of 16
// rows and 16 columns; two second factors of 8 columns, from 16 rows of their transpose; the same
// from 16 rows and 16 columns. Tiles begin at a multiple of 8 rows.
template <class T, int W> __device__ inline void load_left(u32 (&f)[4], const T *tile, int row, int column) {
  const int lane = threadIdx.x % WARP;
  load_matrices<false>(f, tile + place<W>(row + lane % 16, column / 8 + lane / 16));
}
template <class T, int W> __device__ inline void load_right(u32 (&f)[4], const T *tile, int row, int column) {
  const int lane = threadIdx.x % WARP;
  load_matrices<false>(f, tile + place<W>(row + lane / 16 * 8 + lane % 8, column / 8 + lane / 8 % 2));
}
template <class T, int W> __device__ inline void load_below(u32 (&f)[4], const T *tile, int row, int column) {
  const int lane = threadIdx.x % WARP;
  load_matrices<true>(f, tile + place<W>(row + lane % 16, column / 8 + lane / 16));
}

// multiply_pair adds the products with both of two second factors.
template <class T> __device__ inline void multiply_pair(float (*c)[4], const u32 (&a)[4], const u32 (&b)[4]) {
  const u32 first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
  mma_half<T>(c[0], a, first);
  mma_half<T>(c[1], a, second);
}

// scores: s = the products of 16·PARTS rows of a with 8·N rows of b.
template <class T, int W, int PARTS, int N>
__device__ inline void scores(float (&s)[PARTS][N][4], const T *a, const T *b) {
#pragma unroll
  for (int p = 0; p < PARTS; p++)
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
      for (int r = 0; r < 4; r++) s[p][n][r] = 0.0f;
#pragma unroll
  for (int k = 0; k < W; k += 16) {
    u32 left[PARTS][4];
#pragma unroll
    for (int p = 0; p < PARTS; p++) load_left<T, W>(left[p], a, 16 * p, k);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      u32 right[4];
      load_right<T, W>(right, b, 8 * n, k);
#pragma unroll
      for (int p = 0; p < PARTS; p++) multiply_pair<T>(&s[p][n], left[p], right);
    }
  }
}

// add_weighted: o += w·b, where b is 8·N rows of a tile, and w is rounded.
template <class T, int W, int PARTS, int N>
__device__ inline void add_weighted(float (&o)[PARTS][W / 8][4], const float (&w)[PARTS][N][4], const T *b) {
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    u32 left[PARTS][4];
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
      for (int i = 0; i < 4; i++) left[p][i] = pair<T>(w[p][n + i / 2][i % 2 * 2], w[p][n + i / 2][i % 2 * 2 + 1]);
#pragma unroll
    for (int c = 0; c < W; c += 16) {
      u32 right[4];
      load_below<T, W>(right, b, 8 * n, c);
#pragma unroll
      for (int p = 0; p < PARTS; p++) multiply_pair<T>(&o[p][c / 8], left[p], right);
    }
  }
}

// store_rows writes 16·PARTS rows of o, of which count are there, times factors of the rows, through a
// tile that only this warp uses.
template <class T, int W, int PARTS>
__device__ inline void store_rows(T *to, int stride, T *tile, int count, int h,
                                  const float (&o)[PARTS][W / 8][4], const float (&factor)[PARTS][2]) {
  constexpr int packs = W / 8;
  const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  __syncwarp();
#pragma unroll
  for (int p = 0; p < PARTS; p++)
#pragma unroll
    for (int n = 0; n < packs; n++)
#pragma unroll
      for (int half = 0; half < 2; half++)
        *(u32 *)(tile + place<W>(16 * p + 8 * half + g, n) + 2 * t) =
            pair<T>(o[p][n][2 * half] * factor[p][half], o[p][n][2 * half + 1] * factor[p][half]);
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 16 * PARTS * packs; i += WARP) {
    const int r = i / packs, p = i % packs;
    if (r < count && 8 * p < h) *(uint4 *)(to + (i64)r * stride + 8 * p) = *(const uint4 *)(tile + place<W>(r, p));
  }
}

// quad_sum adds numbers of the 4 lanes of a row, quad_maximum returns the largest.
__device__ inline float quad_sum(float v) {
  v = v + __shfl_xor_sync(ALL_LANES, v, 1);
  return v + __shfl_xor_sync(ALL_LANES, v, 2);
}
__device__ inline float quad_maximum(float v) {
#pragma unroll
  for (int by = 1; by < 4; by *= 2) {
    const float other = __shfl_xor_sync(ALL_LANES, v, by);
    if (other > v) v = other;
  }
  return v;
}

// MmaBlock is what a block and a warp work on. The blocks of long rows come first.
struct MmaBlock {
  i64 unit, first, start; // of its numbers in y and in qkv
  int row, stride;        // numbers between rows of y, and of qkv
  int tile;

  __device__ MmaBlock(int t, int tiles, int heads, int h, bool descending) {
    const i64 units = gridDim.x / tiles, at = blockIdx.x / units;
    unit = blockIdx.x - at * units;
    tile = descending ? tiles - 1 - (int)at : (int)at;
    const i64 window = unit / heads, head = unit - window * heads;
    row = heads * h;
    stride = 3 * row;
    first = window * t * row + head * h;
    start = window * t * stride + head * h;
  }
};

// attention_mma: y and lse.
template <class T, int W>
__device__ inline void attention_mma(unsigned char *memory, T *y, float *lse, const T *qkv, int t, int tiles, int heads,
                                     int h, float scale) {
  constexpr int N = MmaPlan<W>::tile, PARTS = MmaPlan<W>::parts, M = 16 * PARTS * AM_WARPS;
  T *q = (T *)memory, *k = q + M * W, *v = k + 2 * N * W;
  const MmaBlock b(t, tiles, heads, h, true);
  const int lane = threadIdx.x % WARP, g = lane / 4, c = lane % 4, mine = threadIdx.x / WARP * 16 * PARTS;
  const int base = b.tile * M, rows = min(t - base, M), key_tiles = (base + rows - 1) / N + 1;
  const T *keys = qkv + b.start + b.row, *values = keys + b.row;
  const float by = scale * LOG2_E;
  float o[PARTS][W / 8][4] = {}, top[PARTS][2], sum[PARTS][2] = {};
#pragma unroll
  for (int p = 0; p < PARTS; p++) top[p][0] = top[p][1] = below_all();

  copy_rows<T, W, M>(q, qkv + b.start + (i64)base * b.stride, b.stride, rows, h);
  copy_rows<T, W, N>(k, keys, b.stride, min(t, N), h);
  copy_rows<T, W, N>(v, values, b.stride, min(t, N), h);
  end_copies();
  for (int i = 0; i < key_tiles; i++) {
    wait_copies<0>();
    __syncthreads(); // the tile is there, and nobody reads the one before any more
    if (i + 1 < key_tiles) {
      const int from = (i + 1) * N, there = min(t - from, N), stage = (i + 1) % 2 * N * W;
      copy_rows<T, W, N>(k + stage, keys + (i64)from * b.stride, b.stride, there, h);
      copy_rows<T, W, N>(v + stage, values + (i64)from * b.stride, b.stride, there, h);
    }
    end_copies();
    if (i * N > base + mine + 16 * PARTS - 1 || mine >= rows) continue; // only later keys, or no rows
    float s[PARTS][N / 8][4];
    scores<T, W>(s, q + mine * W, k + i % 2 * N * W);
    if (i * N + N - 1 > base + mine) { // some keys are later than some queries
#pragma unroll
      for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
          for (int r = 0; r < 4; r++)
            if (i * N + 8 * n + 2 * c + r % 2 > base + mine + 16 * p + g + r / 2 * 8) s[p][n][r] = below_all();
    }
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float most = top[p][half];
#pragma unroll
        for (int n = 0; n < N / 8; n++) most = fmaxf(most, fmaxf(s[p][n][2 * half], s[p][n][2 * half + 1]));
        most = quad_maximum(most);
        const float factor = power((top[p][half] - most) * by), shift = -most * by;
        top[p][half] = most;
        float sums = 0.0f;
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
          for (int r = 2 * half; r < 2 * half + 2; r++) {
            s[p][n][r] = power(fmaf(s[p][n][r], by, shift));
            sums = sums + s[p][n][r];
          }
        sum[p][half] = fmaf(factor, sum[p][half], sums);
#pragma unroll
        for (int n = 0; n < W / 8; n++)
#pragma unroll
          for (int r = 2 * half; r < 2 * half + 2; r++) o[p][n][r] = factor * o[p][n][r];
      }
    add_weighted<T, W>(o, s, v + i % 2 * N * W);
  }
  float inverse[PARTS][2];
#pragma unroll
  for (int p = 0; p < PARTS; p++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float all = quad_sum(sum[p][half]);
      const int r = mine + 16 * p + 8 * half + g;
      inverse[p][half] = 1.0f / all;
      if (c == 0 && r < rows)
        lse[b.unit * t + base + r] = (float)((double)top[p][half] * (double)scale + logarithm((double)all));
    }
  store_rows<T, W>(y + b.first + (i64)(base + mine) * b.row, b.row, q + mine * W, rows - mine, h, o, inverse);
}

// attention_mma_grad_q: dq, and stats = {-lse·log2(e), D} of each row.
template <class T, int W>
__device__ inline void attention_mma_grad_q(unsigned char *memory, T *dqkv, float *stats, const T *qkv, const T *y,
                                            const float *lse, const T *dy, int t, int tiles, int heads, int h,
                                            float scale) {
  constexpr int N = MmaPlan<W>::tile, PARTS = MmaPlan<W>::parts_grad, M = 16 * PARTS * AM_WARPS, AT_ONCE = 32;
  T *q = (T *)memory, *d = q + M * W, *k = d + M * W, *v = k + 2 * N * W;
  const MmaBlock b(t, tiles, heads, h, true);
  const int lane = threadIdx.x % WARP, g = lane / 4, c = lane % 4, mine = threadIdx.x / WARP * 16 * PARTS;
  const int base = b.tile * M, rows = min(t - base, M), key_tiles = (base + rows - 1) / N + 1;
  const T *keys = qkv + b.start + b.row, *values = keys + b.row;
  const float by = scale * LOG2_E;

  copy_rows<T, W, M>(q, qkv + b.start + (i64)base * b.stride, b.stride, rows, h);
  copy_rows<T, W, M>(d, dy + b.first + (i64)base * b.row, b.row, rows, h);
  copy_rows<T, W, N>(k, keys, b.stride, min(t, N), h);
  copy_rows<T, W, N>(v, values, b.stride, min(t, N), h);
  end_copies();
  float shift[PARTS][2], mean[PARTS][2], dq[PARTS][W / 8][4] = {};
#pragma unroll
  for (int p = 0; p < PARTS; p++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int r = mine + 16 * p + 8 * half + g;
      float sum = 0.0f;
      if (r < rows) {
        const i64 at = b.first + (i64)(base + r) * b.row;
        for (int j = 8 * c; j < h; j += 32) {
          const Pack<T> a = load_pack(y + at + j, 8, true), e = load_pack(dy + at + j, 8, true);
#pragma unroll
          for (int l = 0; l < 8; l++) sum = fmaf(a.v[l], e.v[l], sum);
        }
      }
      mean[p][half] = quad_sum(sum);
      shift[p][half] = r < rows ? -lse[b.unit * t + base + r] * LOG2_E : 0.0f;
      if (c == 0 && r < rows) {
        float *to = stats + 2 * (b.unit * t + base + r);
        to[0] = shift[p][half];
        to[1] = mean[p][half];
      }
    }
  for (int i = 0; i < key_tiles; i++) {
    wait_copies<0>();
    __syncthreads(); // the tile is there, and nobody reads the one before any more
    if (i + 1 < key_tiles) {
      const int from = (i + 1) * N, there = min(t - from, N), stage = (i + 1) % 2 * N * W;
      copy_rows<T, W, N>(k + stage, keys + (i64)from * b.stride, b.stride, there, h);
      copy_rows<T, W, N>(v + stage, values + (i64)from * b.stride, b.stride, there, h);
    }
    end_copies();
    const T *key = k + i % 2 * N * W, *value = v + i % 2 * N * W;
#pragma unroll 1
    for (int from = 0; from < N; from += AT_ONCE) {
      const int first = i * N + from;
      if (first > base + mine + 16 * PARTS - 1 || mine >= rows) break; // only later keys, or no rows
      float s[PARTS][AT_ONCE / 8][4], e[PARTS][AT_ONCE / 8][4];
      scores<T, W>(s, q + mine * W, key + from * W);
      scores<T, W>(e, d + mine * W, value + from * W);
      const bool masks = first + AT_ONCE - 1 > base + mine;
#pragma unroll
      for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int n = 0; n < AT_ONCE / 8; n++)
#pragma unroll
          for (int r = 0; r < 4; r++) {
            const float share = power(fmaf(s[p][n][r], by, shift[p][r / 2]));
            s[p][n][r] = masks && first + 8 * n + 2 * c + r % 2 > base + mine + 16 * p + g + r / 2 * 8
                             ? 0.0f
                             : share * (e[p][n][r] - mean[p][r / 2]);
          }
      add_weighted<T, W>(dq, s, key + from * W);
    }
  }
  float factor[PARTS][2];
#pragma unroll
  for (int p = 0; p < PARTS; p++) factor[p][0] = factor[p][1] = scale;
  store_rows<T, W>(dqkv + b.start + (i64)(base + mine) * b.stride, b.stride, q + mine * W, rows - mine, h, dq, factor);
}

// attention_mma_grad_kv: dk and dv, from the stats of attention_mma_grad_q.
template <class T, int W>
__device__ inline void attention_mma_grad_kv(unsigned char *memory, T *dqkv, const float *stats, const T *qkv,
                                             const T *dy, int t, int tiles, int heads, int h, float scale) {
  constexpr int N = MmaPlan<W>::tile, PARTS = MmaPlan<W>::parts_grad, M = 16 * PARTS * AM_WARPS, AT_ONCE = 32;
  static_assert(2 * N <= AM_THREADS && M % N == 0, "a thread has one number of a tile's statistics");
  T *k = (T *)memory, *v = k + M * W, *q = v + M * W, *d = q + 2 * N * W;
  float *statistics = (float *)(d + 2 * N * W); // those of the rows of two tiles
  const MmaBlock b(t, tiles, heads, h, false);
  const int lane = threadIdx.x % WARP, g = lane / 4, c = lane % 4, mine = threadIdx.x / WARP * 16 * PARTS;
  const int base = b.tile * M, rows = min(t - base, M), query_tiles = (t + N - 1) / N;
  const T *queries = qkv + b.start, *slopes = dy + b.first;
  const float by = scale * LOG2_E;
  float dk[PARTS][W / 8][4] = {}, dv[PARTS][W / 8][4] = {};

  // statistic returns the number of this thread for a tile of queries. Rows that are not there get
  // -∞, so that their shares are 0.
  const float *const all_stats = stats + 2 * b.unit * t;
  const auto statistic = [&](int tile) {
    const int at = 2 * N * tile + (int)threadIdx.x;
    return at < 2 * t ? all_stats[at] : at % 2 ? 0.0f : below_all();
  };
  const auto copy_tile = [&](int tile) {
    const int there = min(t - tile * N, N), stage = tile % 2 * N * W;
    copy_rows<T, W, N>(q + stage, queries + (i64)tile * N * b.stride, b.stride, there, h);
    copy_rows<T, W, N>(d + stage, slopes + (i64)tile * N * b.row, b.row, there, h);
  };

  const int begin = base / N;
  copy_rows<T, W, M>(k, qkv + b.start + b.row + (i64)base * b.stride, b.stride, rows, h);
  copy_rows<T, W, M>(v, qkv + b.start + 2 * b.row + (i64)base * b.stride, b.stride, rows, h);
  copy_tile(begin);
  end_copies();
  if ((int)threadIdx.x < 2 * N) statistics[begin % 2 * 2 * N + threadIdx.x] = statistic(begin);
  for (int i = begin; i < query_tiles; i++) {
    wait_copies<0>();
    __syncthreads(); // the tile is there, and nobody reads the one before any more
    float next = 0.0f;
    if (i + 1 < query_tiles) {
      copy_tile(i + 1);
      if ((int)threadIdx.x < 2 * N) next = statistic(i + 1);
    }
    end_copies();
    const T *query = q + i % 2 * N * W, *slope = d + i % 2 * N * W;
    const float *statistic_of = statistics + i % 2 * 2 * N;
#pragma unroll 1
    for (int from = 0; from < N; from += AT_ONCE) {
      const int first = i * N + from;
      if (first + AT_ONCE - 1 < base + mine || mine >= rows) continue; // only earlier queries, or no rows
      float s[PARTS][AT_ONCE / 8][4], e[PARTS][AT_ONCE / 8][4];
      scores<T, W>(s, k + mine * W, query + from * W);
      const bool masks = first < base + mine + 16 * PARTS - 1;
#pragma unroll
      for (int n = 0; n < AT_ONCE / 8; n++) {
        const int column = from + 8 * n + 2 * c;
        const Four of_columns = load4(statistic_of + 2 * column);
#pragma unroll
        for (int p = 0; p < PARTS; p++)
#pragma unroll
          for (int r = 0; r < 4; r++) {
            const float share = power(fmaf(s[p][n][r], by, of_columns.v[r % 2 * 2]));
            s[p][n][r] = masks && base + mine + 16 * p + g + r / 2 * 8 > i * N + column + r % 2 ? 0.0f : share;
          }
      }
      add_weighted<T, W>(dv, s, slope + from * W);
      scores<T, W>(e, v + mine * W, slope + from * W);
#pragma unroll
      for (int n = 0; n < AT_ONCE / 8; n++) {
        const Four of_columns = load4(statistic_of + 2 * (from + 8 * n + 2 * c));
#pragma unroll
        for (int p = 0; p < PARTS; p++)
#pragma unroll
          for (int r = 0; r < 4; r++) s[p][n][r] = s[p][n][r] * (e[p][n][r] - of_columns.v[r % 2 * 2 + 1]);
      }
      add_weighted<T, W>(dk, s, query + from * W);
    }
    if (i + 1 < query_tiles && (int)threadIdx.x < 2 * N) statistics[(i + 1) % 2 * 2 * N + threadIdx.x] = next;
  }
  float factor[PARTS][2];
#pragma unroll
  for (int p = 0; p < PARTS; p++) factor[p][0] = factor[p][1] = scale;
  T *to = dqkv + b.start + b.row + (i64)(base + mine) * b.stride;
  store_rows<T, W>(to, b.stride, k + mine * W, rows - mine, h, dk, factor);
#pragma unroll
  for (int p = 0; p < PARTS; p++) factor[p][0] = factor[p][1] = 1.0f;
  store_rows<T, W>(to + b.row, b.stride, v + mine * W, rows - mine, h, dv, factor);
}

#define ON_TENSOR_CORES(...) __VA_ARGS__
#else
#define ON_TENSOR_CORES(...)
#endif

#define ATTENTION_MMA_KERNELS(T, W, suffix)                                                                            \
  KERNEL_OCCUPANCY(AM_THREADS, 2)                                                                                      \
  attention_mma_##suffix(T *y, float *lse, const T *qkv, int t, int tiles, int heads, int h, float scale) {            \
    ON_TENSOR_CORES(DYNAMIC_SHARED(memory);                                                                            \
                    attention_mma<T, W>(memory, y, lse, qkv, t, tiles, heads, h, scale);)                              \
  }                                                                                                                    \
  KERNEL_OCCUPANCY(AM_THREADS, 2)                                                                                      \
  attention_mma_grad_q_##suffix(T *dqkv, float *stats, const T *qkv, const T *y, const float *lse, const T *dy, int t, \
                                int tiles, int heads, int h, float scale) {                                            \
    ON_TENSOR_CORES(DYNAMIC_SHARED(memory); attention_mma_grad_q<T, W>(memory, dqkv, stats, qkv, y, lse, dy, t, tiles, \
                                                                       heads, h, scale);)                              \
  }                                                                                                                    \
  KERNEL_OCCUPANCY(AM_THREADS, 2)                                                                                      \
  attention_mma_grad_kv_##suffix(T *dqkv, const float *stats, const T *qkv, const T *dy, int t, int tiles, int heads, \
                                 int h, float scale) {                                                                 \
    ON_TENSOR_CORES(DYNAMIC_SHARED(memory); attention_mma_grad_kv<T, W>(memory, dqkv, stats, qkv, dy, t, tiles, heads, \
                                                                        h, scale);)                                    \
  }

ATTENTION_MMA_KERNELS(Half, 32, 32_f16)
ATTENTION_MMA_KERNELS(Half, 64, 64_f16)
ATTENTION_MMA_KERNELS(Half, 128, 128_f16)
ATTENTION_MMA_KERNELS(BFloat, 32, 32_bf16)
ATTENTION_MMA_KERNELS(BFloat, 64, 64_bf16)
ATTENTION_MMA_KERNELS(BFloat, 128, 128_bf16)
