// Bodies of gemm_half.cu: matrix products with 16-bit factors. The factors are stored as float32,
// like the agents' vectors, and rounded when they are loaded for the tensor cores. Sums are
// float32.
#pragma once
#include "gemm.cuh"
#include "mma.cuh"
#include "scaler.cuh"

// PairLoader is Loader for tiles of pairs.
template <class T, int SIDE, int THREADS, bool ALONG, class Source> struct PairLoader {
  static constexpr int pairs = BK / 2, each = SIDE * pairs / THREADS;
  u32 held[each];

  __device__ static int side_of(int e) { return ALONG ? e / pairs : e % SIDE; }
  __device__ static int pair_of(int e) { return ALONG ? e % pairs : e / SIDE; }

  // fetch loads rows first.. and products from.. below end into registers. Everything beyond is 0.
  __device__ void fetch(const Source &s, u32 thread, int first, int most, int from, int end) {
#pragma unroll
    for (int r = 0; r < each; r++) {
      const int e = (int)thread + r * THREADS, i = first + side_of(e), p = from + 2 * pair_of(e);
      const float low = i < most && p < end ? (ALONG ? s.at(i, p) : s.at(p, i)) : 0.0f;
      const float high = i < most && p + 1 < end ? (ALONG ? s.at(i, p + 1) : s.at(p + 1, i)) : 0.0f;
      held[r] = pair<T>(low, high);
    }
  }
  template <int WIDTH> __device__ void put(u32 thread, u32 (&tile)[BK / 2][WIDTH]) const {
#pragma unroll
    for (int r = 0; r < each; r++) {
      const int e = (int)thread + r * THREADS;
      tile[pair_of(e)][side_of(e)] = held[r];
    }
  }
};

// PairTiles is the shared memory of a block. Rows of 72 avoid bank conflicts between the lanes of a
// fragment.
struct PairTiles {
  u32 a[BK / 2][TC_SIDE + 8], b[BK / 2][TC_SIDE + 8];
};

// HalfEpilogue is the operation applied to a product: after() of gemm.cuh, and rounding and
// scaling.
struct HalfEpilogue {
  int epilogue;
  float factor;
  const float *aux;
  bool round; // round C to 16 bits: it is an activation or the gradient of one
  // divides the product by the loss scale and records non-finite numbers; null for neither
  Scaler *scaler;
};

// multiply_half is multiply_tf32 of gemm.cuh with factors of type T. A warp computes 16 rows of C.
// GPUs below sm_80 multiply on their ordinary cores.
template <class T, bool A_ALONG, bool B_ALONG, class Block, class SA, class SB>
__device__ inline void multiply_half(const Block &block, const SA &a, const SB &b, float *c, float *sums, int m, int n,
                                     int k, const HalfEpilogue &f) {
  constexpr int THREADS = 2 * TC_SIDE;
  auto &[ta, tb] = shared_of<PairTiles>(block);
  const u32 thread = block.thread();
  PairLoader<T, TC_SIDE, THREADS, A_ALONG, SA> la;
  PairLoader<T, TC_SIDE, THREADS, B_ALONG, SB> lb;
  const int row = (int)block.y() * TC_SIDE, column = (int)block.x() * TC_SIDE;
  const int g = thread % WARP / 4, t = thread % 4, mine = thread / WARP * 16;
  const bool adds = sums && block.x() == 0 && thread < TC_SIDE;
  double sum = 0.0;
  float s[TC_SIDE / 8][4] = {};
  la.fetch(a, thread, row, m, 0, k);
  lb.fetch(b, thread, column, n, 0, k);
  for (int p = 0; p < k; p += BK) {
    block.sync();
    la.put(thread, ta);
    lb.put(thread, tb);
    block.sync();
    la.fetch(a, thread, row, m, p + BK, k); // loads overlap with the products
    lb.fetch(b, thread, column, n, p + BK, k);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    for (int q = 0; q < BK / 2; q++)
#pragma unroll
      for (int j = 0; j < TC_SIDE / 8; j++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
          const u32 u = ta[q][mine + g + r / 2 * 8], v = tb[q][8 * j + 2 * t + r % 2];
          s[j][r] = fmaf(high_of<T>(u), high_of<T>(v), fmaf(low_of<T>(u), low_of<T>(v), s[j][r]));
        }
#else
    const u32 fa[4] = {ta[t][mine + g], ta[t][mine + g + 8], ta[t + 4][mine + g], ta[t + 4][mine + g + 8]};
#pragma unroll
    for (int j = 0; j < TC_SIDE / 8; j++) {
      const u32 fb[2] = {tb[t][8 * j + g], tb[t + 4][8 * j + g]};
      mma_half<T>(s[j], fa, fb);
    }
#endif
    if (adds)
      for (int q = 0; q < BK / 2 && p + 2 * q < k; q++)
        sum = sum + (double)low_of<T>(ta[q][thread]) + (double)high_of<T>(ta[q][thread]);
  }
  const float by = f.scaler ? f.scaler->inverse : 1.0f;
  bool bad = adds && not_finite((float)sum);
#pragma unroll
  for (int j = 0; j < TC_SIDE / 8; j++)
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const int y = row + mine + g + r / 2 * 8, x = column + 8 * j + 2 * t + r % 2;
      if (y < m && x < n) {
        const i64 at = (i64)y * n + x;
        bad = bad || not_finite(s[j][r]);
        const float v = apply_epilogue(f.epilogue, s[j][r] * by, f.aux, at, x, f.factor);
        c[at] = f.round ? rounded_to<T>(v) : v;
      }
    }
  if (adds && row + (int)thread < m) sums[row + thread] = (float)sum * by;
  if (f.scaler) report_nonfinite(f.scaler, bad);
}

// HalfProduct selects a product by template arguments, as TensorCore of gemm.cuh does.
template <class Type, bool A_ALONG, bool B_ALONG> struct HalfProduct {
  typedef Type T;
  static constexpr bool a_along = A_ALONG, b_along = B_ALONG;
  template <class... Args> __device__ static void make(const Args &...args) {
    multiply_half<T, A_ALONG, B_ALONG>(args...);
  }
};

#define EPILOGUE(block)                                                                                                \
  HalfEpilogue{epilogue, factor, AGENT(block, aux), round != 0, scalers ? scalers[block.z()] : (Scaler *)0}

template <class Product, class Block>
__device__ inline void gemm_half_of(const Block &block, OPERAND(const float, a), OPERAND(const float, b),
                                    OPERAND(float, c), OPERAND(const float, aux), OPERAND(float, sums), int m, int n,
                                    int k, int epilogue, float factor, int round, Scaler *const *scalers) {
  Product::make(block, Matrix{AGENT(block, a), Product::a_along ? k : m},
                Matrix{AGENT(block, b), Product::b_along ? k : n}, AGENT(block, c), AGENT(block, sums), m, n, k,
                EPILOGUE(block));
}

// gemm_nt_bytes_half_of multiplies with a byte matrix A: the m rows of agent z are rows[z·m..].
template <class Product, class Block>
__device__ inline void gemm_nt_bytes_half_of(const Block &block, const u8 *bytes, const int *rows, float scale,
                                             float shift, OPERAND(const float, b), OPERAND(float, c),
                                             OPERAND(const float, aux), int m, int n, int k, int epilogue, float factor,
                                             int round, Scaler *const *scalers) {
  Product::make(block, ByteMatrix{bytes, rows + (i64)block.z() * m, k, scale, shift}, Matrix{AGENT(block, b), k},
                AGENT(block, c), (float *)0, m, n, k, EPILOGUE(block));
}

// gemm_tn_bytes_half_of multiplies with a byte matrix B: the k rows of agent z are rows[z·k..].
template <class Product, class Block>
__device__ inline void gemm_tn_bytes_half_of(const Block &block, OPERAND(const float, a), const u8 *bytes,
                                             const int *rows, float scale, float shift, OPERAND(float, c),
                                             OPERAND(const float, aux), OPERAND(float, sums), int m, int n, int k,
                                             int epilogue, float factor, int round, Scaler *const *scalers) {
  Product::make(block, Matrix{AGENT(block, a), m}, ByteMatrix{bytes, rows + (i64)block.z() * k, n, scale, shift},
                AGENT(block, c), AGENT(block, sums), m, n, k, EPILOGUE(block));
}

// scale_each: multiplies the n numbers at x + z·stride, the gradient of agent z's loss, by the
// agent's loss scale.
BODY scale_each_of(const Block &block, float *x, i64 stride, i64 n, Scaler *const *scalers) {
  const i64 i = block.index();
  float *mine = x + block.z() * stride;
  if (i < n) mine[i] = mine[i] * scalers[block.z()]->scale;
}

// zero_if_inf_each sets the gradient of an agent to zero if its scaler has found a non-finite
// number.
BODY zero_if_inf_each_of(const Block &block, float *const *g, Scaler *const *scalers, i64 n) {
  const i64 i = block.index();
  if (i < n && scalers[block.z()]->found) g[block.z()][i] = 0.0f;
}

// step_each updates the loss scale of every agent at the end of an iteration, and copies the
// scalers to out, in order.
BODY step_each_of(const Block &block, Scaler *const *scalers, Scaler *out, int agents, float growth, float backoff,
                  float largest, u32 interval) {
  const i64 z = block.index();
  if (z >= agents) return;
  step_scale(scalers[z], growth, backoff, largest, interval);
  out[z] = *scalers[z];
}
