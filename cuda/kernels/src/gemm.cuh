// Bodies of gemm.cu: float32 matrix products with the CPU's bits (cpu/gemm.go). The k products of
// an element are split into the fewest chunks of at most 384, longer chunks first. A chunk is
// summed by fma from its first product to its last, and the chunks are added from left to right.
// One thread computes all products of an element, so the order does not depend on the tiles.
// Products of the same shape for several agents are one launch: the z index of a block is the
// agent.
//
// Matrices are row-major and contiguous. C is m×n; A is m×k, or k×m if transposed; B is n×k, or k×n
// if not transposed.
#pragma once
#include "agent.cuh"
#include "exponential.cuh"

#define DEPTH 384 // products per chunk
#define BK 16     // depth of a tile

// Epilogues: the operation applied to an element of C.
#define NO_EPILOGUE 0
#define ADD_BIAS 1     // c + aux[j]
#define BIAS_SIGMOID 2 // 1/(1+exp(-(c + aux[j])))
#define BIAS_RELU 3    // max(c + aux[j], 0)
#define SIGMOID_GRAD 4 // c·y·(1-y), y = aux[i][j]
#define RELU_GRAD 5    // c where aux[i][j] > 0, else 0
#define ADD_SCALED 6   // c + factor·aux[i][j], the product rounded first

NOINLINE float sigmoid_call(float x) { return sigmoid_of(x); }

__device__ inline float apply_epilogue(int epilogue, float c, const float *aux, i64 at, int j, float factor) {
  switch (epilogue) {
  case ADD_BIAS: return c + aux[j];
  case BIAS_SIGMOID: return sigmoid_call(c + aux[j]);
  case BIAS_RELU: return relu_of(c + aux[j]);
  case SIGMOID_GRAD: return (c * aux[at]) * (1.0f - aux[at]);
  case RELU_GRAD: return aux[at] > 0.0f ? c : 0.0f;
  case ADD_SCALED: return c + factor * aux[at];
  }
  return c;
}

// tf32 rounds to a 10-bit mantissa, ties away from zero, and returns the bits of a float32. NaN and
// infinities stay what they are: the carry of a NaN with a full mantissa would make it -0.
__device__ inline u32 tf32(float v) {
  const u32 bits = __float_as_uint(v);
  return v == v ? (bits + 0x1000u) & 0xffffe000u : bits | 0x400000u;
}

// A source of a product is a matrix with rows of `width` numbers. `group` numbers of a row are loaded
// at once, into the registers of a Raw, where the row's address allows it.

// Matrix is a matrix of float32.
struct Matrix {
  static constexpr int group = 4;
  typedef Four Raw;
  const float *p;
  int width;
  __device__ float at(int i, int j) const { return p[(i64)i * width + j]; }
  __device__ bool grouped() const { return aligned16(address(p)) && width % group == 0; }
  __device__ int stored_row(int i) const { return i; }
  __device__ void load(Raw &to, i64 from) const { to = load4(p + from); }
  __device__ void load_one(Raw &to, int j, i64 from) const { to.v[j] = p[from]; }
  __device__ float number(const Raw &of, int j) const { return of.v[j]; }
};

// ByteMatrix is a matrix stored as bytes. The number of a byte is byte·scale + shift, the product
// rounded first. Row i is row rows[i] of the bytes.
struct ByteMatrix {
  static constexpr int group = 8;
  struct Raw {
    u32 v[2];
  };
  const u8 *bytes;
  const int *rows;
  int width;
  float scale, shift;
  __device__ float at(int i, int j) const { return (float)bytes[(i64)rows[i] * width + j] * scale + shift; }
  __device__ bool grouped() const { return ((address(bytes) | (u64)width) & 7) == 0; }
  __device__ int stored_row(int i) const { return rows[i]; }
  __device__ void load(Raw &to, i64 from) const {
    const uint2 words = *(const uint2 *)(bytes + from);
    to.v[0] = words.x, to.v[1] = words.y;
  }
  __device__ void load_one(Raw &to, int j, i64 from) const { to.v[j / 4] |= (u32)bytes[from] << 8 * (j % 4); }
  __device__ float number(const Raw &of, int j) const {
    return (float)(of.v[j / 4] >> 8 * (j % 4) & 0xff) * scale + shift;
  }
};

// Loader loads a tile of SIDE×BK numbers and transposes it, so that the numbers of one product are
// adjacent. ALONG says that the rows of the operand run along k. It holds what it loads as it is
// stored, and converts it when the tile is written, so that no instruction waits for a load before
// the products of the tile before. Nor does a load wait for another: the stored row of each number
// is known one tile ahead.
template <int SIDE, int THREADS, bool ALONG, class Source> struct Loader {
  static constexpr int group = Source::group, across = (ALONG ? BK : SIDE) / group;
  static constexpr int each = SIDE * BK / group / THREADS;
  static_assert(each * group * THREADS == SIDE * BK, "the threads share a tile evenly");
  typename Source::Raw held[each];
  int stored[each]; // row, -1 for none
  bool grouped;

  // begin prepares to fetch rows first.. and products 0..; most and end are the numbers of both.
  __device__ void begin(const Source &s, u32 thread, int first, int most, int end) {
    grouped = s.grouped();
#pragma unroll
    for (int r = 0; r < each; r++) {
      const int i = (int)(thread + r * THREADS) / across;
      find(s, r, ALONG ? first + i : i, ALONG ? most : end);
    }
  }
  __device__ void find(const Source &s, int r, int row, int rows) { stored[r] = row < rows ? s.stored_row(row) : -1; }

  // fetch loads products from.. into registers; calls come tile after tile.
  __device__ void fetch(const Source &s, u32 thread, int first, int most, int from, int end) {
#pragma unroll
    for (int r = 0; r < each; r++) {
      const int e = thread + r * THREADS, column = (ALONG ? from : first) + e % across * group;
      const int columns = ALONG ? end : most;
      held[r] = {};
      const i64 at = (i64)stored[r] * s.width + column;
      if (stored[r] >= 0 && from < end) {
        if (grouped && column + group <= columns) {
          s.load(held[r], at);
        } else {
          for (int j = 0; j < group; j++)
            if (column + j < columns) s.load_one(held[r], j, at + j);
        }
      }
      if (!ALONG) find(s, r, from + BK + e / across, end);
    }
  }
  // put writes the tile, rounded to TF32 if ROUND.
  template <bool ROUND, int WIDTH> __device__ void put(const Source &s, u32 thread, float (&tile)[BK][WIDTH]) const {
#pragma unroll
    for (int r = 0; r < each; r++) {
      const int e = thread + r * THREADS, row = e / across, column = e % across * group;
#pragma unroll
      for (int j = 0; j < group; j++) {
        const float v = s.number(held[r], j);
        tile[ALONG ? column + j : row][ALONG ? row : column + j] = ROUND ? __uint_as_float(tf32(v)) : v;
      }
    }
  }
};

// Tiles is the shared memory of a block: a tile of each factor that is multiplied, and the next.
template <int WIDTH> struct Tiles {
  __align__(16) float a[2][BK][WIDTH], b[2][BK][WIDTH];
};

// multiply computes a block's SIDE×SIDE elements of C, 4×4 per thread. If sums is not null and the
// block is in the first column, it also sums the rows of A in float64, in order.
template <int SIDE, bool A_ALONG, bool B_ALONG, class Block, class SA, class SB>
__device__ inline void multiply(const Block &block, const SA &a, const SB &b, float *c, const float *aux, float *sums,
                                int m, int n, int k, int epilogue, float factor) {
  constexpr int ACROSS = SIDE / 4, THREADS = ACROSS * ACROSS;
  auto &tiles = shared_of<Tiles<SIDE + 4>>(block);
  const u32 thread = block.thread();
  Loader<SIDE, THREADS, A_ALONG, SA> la;
  Loader<SIDE, THREADS, B_ALONG, SB> lb;
  const int row = (int)block.y() * SIDE, column = (int)block.x() * SIDE;
  const int tx = thread % ACROSS, ty = thread / ACROSS;
  const bool adds = sums && block.x() == 0 && thread < SIDE;
  double sum = 0.0;
  float all[4][4], s[4][4] = {};
  const int chunks = (k + DEPTH - 1) / DEPTH;
  int chunk = 0, end = k / chunks + (k % chunks ? 1 : 0); // of the chunk
  la.begin(a, thread, row, m, k);
  lb.begin(b, thread, column, n, k);
  la.fetch(a, thread, row, m, 0, k);
  lb.fetch(b, thread, column, n, 0, k);
  block.sync();
  for (int p = 0; p < k; p += BK) {
    auto &ta = tiles.a[p / BK % 2], &tb = tiles.b[p / BK % 2];
    la.template put<false>(a, thread, ta);
    lb.template put<false>(b, thread, tb);
    block.sync(); // one for each tile: all have multiplied the last but one
    la.fetch(a, thread, row, m, p + BK, k); // loads overlap with the products
    lb.fetch(b, thread, column, n, p + BK, k);
    // Products with the zero padding of a tile could turn -0 into +0, so only real ones are added.
    const int count = k - p < BK ? k - p : BK;
    int q = 0;
    do {
      const int stop = end - p < count ? end - p : count;
#pragma unroll 4
      for (; q < stop; q++) {
        const Four va = load4(&ta[q][4 * ty]), vb = load4(&tb[q][4 * tx]);
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
          for (int j = 0; j < 4; j++) s[i][j] = fmaf(va.v[i], vb.v[j], s[i][j]);
      }
      if (p + q < end) break;
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) all[i][j] = chunk == 0 ? s[i][j] : s[i][j] + all[i][j], s[i][j] = 0.0f;
      chunk++;
      end += k / chunks + (chunk < k % chunks ? 1 : 0);
    } while (q < count);
    if (adds)
      for (int q = 0; q < count; q++) sum = sum + (double)ta[q][thread];
  }
#pragma unroll 1 // the epilogue's code is long: shift registers instead of unrolling
  for (int i = 0; i < 4; i++) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int y = row + 4 * ty + i, x = column + 4 * tx + j;
      if (y < m && x < n) {
        const i64 at = (i64)y * n + x;
        c[at] = apply_epilogue(epilogue, all[0][j], aux, at, x, factor);
      }
      all[0][j] = all[1][j], all[1][j] = all[2][j], all[2][j] = all[3][j];
    }
  }
  if (adds && row + (int)thread < m) sums[row + thread] = (float)sum;
}

#ifndef FSPDA_HOST
// mma_tf32 multiplies 16×8 by 8×8 numbers in a warp; hostrun/host.h describes which numbers a lane
// holds.
__device__ inline void mma_tf32(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
               "%1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}
#endif

#define TC_SIDE 64 // side of a block's tile of C

// multiply_tf32 is multiply on tensor cores, with the factors rounded to TF32. A warp computes 16
// rows. GPUs below sm_80 have no TF32 and use float32.
template <bool A_ALONG, bool B_ALONG, class Block, class SA, class SB>
__device__ inline void multiply_tf32(const Block &block, const SA &a, const SB &b, float *c, const float *aux,
                                     float *sums, int m, int n, int k, int epilogue, float factor) {
  constexpr int THREADS = 2 * TC_SIDE;
  // rows of 72 avoid bank conflicts between the lanes of a fragment
  auto &tiles = shared_of<Tiles<TC_SIDE + 8>>(block);
  const u32 thread = block.thread();
  Loader<TC_SIDE, THREADS, A_ALONG, SA> la;
  Loader<TC_SIDE, THREADS, B_ALONG, SB> lb;
  const int row = (int)block.y() * TC_SIDE, column = (int)block.x() * TC_SIDE;
  const int g = thread % WARP / 4, t = thread % 4, mine = thread / WARP * 16;
  const bool adds = sums && block.x() == 0 && thread < TC_SIDE;
  double sum = 0.0;
  float s[TC_SIDE / 8][4] = {};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  constexpr bool rounds = false;
#else
  constexpr bool rounds = true; // B here, once; A where it is multiplied, since its sums are exact
#endif
  la.begin(a, thread, row, m, k);
  lb.begin(b, thread, column, n, k);
  la.fetch(a, thread, row, m, 0, k);
  lb.fetch(b, thread, column, n, 0, k);
  block.sync();
  for (int p = 0; p < k; p += BK) {
    auto &ta = tiles.a[p / BK % 2], &tb = tiles.b[p / BK % 2];
    la.template put<false>(a, thread, ta);
    lb.template put<rounds>(b, thread, tb);
    block.sync();
    la.fetch(a, thread, row, m, p + BK, k);
    lb.fetch(b, thread, column, n, p + BK, k);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    for (int q = 0; q < BK; q++)
#pragma unroll
      for (int j = 0; j < TC_SIDE / 8; j++)
#pragma unroll
        for (int r = 0; r < 4; r++) s[j][r] = fmaf(ta[q][mine + g + r / 2 * 8], tb[q][8 * j + 2 * t + r % 2], s[j][r]);
#else
#pragma unroll
    for (int q = 0; q < BK; q += 8) {
      const u32 fa[4] = {tf32(ta[q + t][mine + g]), tf32(ta[q + t][mine + g + 8]), tf32(ta[q + t + 4][mine + g]),
                         tf32(ta[q + t + 4][mine + g + 8])};
#pragma unroll
      for (int j = 0; j < TC_SIDE / 8; j++) {
        const u32 fb[2] = {__float_as_uint(tb[q + t][8 * j + g]), __float_as_uint(tb[q + t + 4][8 * j + g])};
        mma_tf32(s[j], fa, fb);
      }
    }
#endif
    if (adds)
      for (int q = 0; q < BK && p + q < k; q++) sum = sum + (double)ta[q][thread];
  }
#pragma unroll 1
  for (int j = 0; j < TC_SIDE / 8; j++)
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const int y = row + mine + g + r / 2 * 8, x = column + 8 * j + 2 * t + r % 2;
      if (y < m && x < n) {
        const i64 at = (i64)y * n + x;
        c[at] = apply_epilogue(epilogue, s[0][r], aux, at, x, factor);
      }
#pragma unroll
      for (int l = 1; l < TC_SIDE / 8; l++) s[l - 1][r] = s[l][r];
    }
  if (adds && row + (int)thread < m) sums[row + thread] = (float)sum;
}

// Exact and TensorCore select a product by template arguments: n stands for a factor as stored and
// t for a transposed one, so nt is A·Bᵀ.
template <int SIDE, bool A_ALONG, bool B_ALONG> struct Exact {
  static constexpr bool a_along = A_ALONG, b_along = B_ALONG;
  template <class... Args> __device__ static void make(const Args &...args) {
    multiply<SIDE, A_ALONG, B_ALONG>(args...);
  }
};
template <bool A_ALONG, bool B_ALONG> struct TensorCore {
  static constexpr bool a_along = A_ALONG, b_along = B_ALONG;
  template <class... Args> __device__ static void make(const Args &...args) {
    multiply_tf32<A_ALONG, B_ALONG>(args...);
  }
};
typedef Exact<32, true, true> SmallNT;
typedef Exact<32, true, false> SmallNN;
typedef Exact<32, false, false> SmallTN;
typedef Exact<64, true, true> LargeNT;
typedef Exact<64, true, false> LargeNN;
typedef Exact<64, false, false> LargeTN;
typedef TensorCore<true, true> TensorCoreNT;
typedef TensorCore<true, false> TensorCoreNN;
typedef TensorCore<false, false> TensorCoreTN;

template <class Product, class Block> __device__ inline void gemm_of(const Block &block, OPERAND(const float, a),
                                                                     OPERAND(const float, b), OPERAND(float, c),
                                                                     OPERAND(const float, aux), OPERAND(float, sums),
                                                                     int m, int n, int k, int epilogue, float factor) {
  Product::make(block, Matrix{AGENT(block, a), Product::a_along ? k : m},
                Matrix{AGENT(block, b), Product::b_along ? k : n}, AGENT(block, c), AGENT(block, aux),
                AGENT(block, sums), m, n, k, epilogue, factor);
}

// gemm_nt_bytes_of multiplies with a byte matrix A: the m rows of agent z are rows[z·m..].
template <class Product, class Block>
__device__ inline void gemm_nt_bytes_of(const Block &block, const u8 *bytes, const int *rows, float scale, float shift,
                                        OPERAND(const float, b), OPERAND(float, c), OPERAND(const float, aux), int m,
                                        int n, int k, int epilogue, float factor) {
  Product::make(block, ByteMatrix{bytes, rows + (i64)block.z() * m, k, scale, shift}, Matrix{AGENT(block, b), k},
                AGENT(block, c), AGENT(block, aux), (float *)0, m, n, k, epilogue, factor);
}

// gemm_tn_bytes_of multiplies with a byte matrix B: the k rows of agent z are rows[z·k..].
template <class Product, class Block>
__device__ inline void gemm_tn_bytes_of(const Block &block, OPERAND(const float, a), const u8 *bytes, const int *rows,
                                        float scale, float shift, OPERAND(float, c), OPERAND(const float, aux),
                                        OPERAND(float, sums), int m, int n, int k, int epilogue, float factor) {
  Product::make(block, Matrix{AGENT(block, a), m}, ByteMatrix{bytes, rows + (i64)block.z() * k, n, scale, shift},
                AGENT(block, c), AGENT(block, aux), AGENT(block, sums), m, n, k, epilogue, factor);
}
