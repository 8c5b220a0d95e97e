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
  static constexpr int group = Source::group, across = (ALONG ? BK : SIDE) / group, groups = SIDE * BK / group;
  static constexpr int each = (groups + THREADS - 1) / THREADS;
  static_assert(BK % group == 0 && SIDE % group == 0, "a row of a tile is whole groups");
  typename Source::Raw held[each];
  int stored[each]; // row, -1 for none
  bool grouped;

  // mine reports whether the thread has an r-th group.
  static __device__ bool mine(u32 thread, int r) { return groups % THREADS == 0 || thread + r * THREADS < groups; }

  // begin prepares to fetch rows first.. and products from..; most and k are the numbers of both.
  __device__ void begin(const Source &s, u32 thread, int first, int most, int from, int k) {
    grouped = s.grouped();
#pragma unroll
    for (int r = 0; r < each; r++) {
      const int i = (int)(thread + r * THREADS) / across;
      find(s, thread, r, ALONG ? first + i : from + i, ALONG ? most : k);
    }
  }
  __device__ void find(const Source &s, u32 thread, int r, int row, int rows) {
    stored[r] = row < rows && mine(thread, r) ? s.stored_row(row) : -1;
  }

  // fetch loads products from.. into registers, unless they are not wanted; calls come tile after
  // tile.
  __device__ void fetch(const Source &s, u32 thread, int first, int most, int from, int k, bool wanted) {
#pragma unroll
    for (int r = 0; r < each; r++) {
      const int e = thread + r * THREADS, column = (ALONG ? from : first) + e % across * group;
      const int columns = ALONG ? k : most;
      held[r] = {};
      const i64 at = (i64)stored[r] * s.width + column;
      if (stored[r] >= 0 && wanted) {
        if (grouped && column + group <= columns) {
          s.load(held[r], at);
        } else {
          for (int j = 0; j < group; j++)
            if (column + j < columns) s.load_one(held[r], j, at + j);
        }
      }
      if (!ALONG) find(s, thread, r, from + BK + e / across, k);
    }
  }
  // put writes the tile, rounded to TF32 if ROUND.
  template <bool ROUND, int WIDTH> __device__ void put(const Source &s, u32 thread, float (&tile)[BK][WIDTH]) const {
#pragma unroll
    for (int r = 0; r < each; r++) {
      const int e = thread + r * THREADS, row = e / across, column = e % across * group;
      if (!mine(thread, r)) break;
      Four v;
#pragma unroll
      for (int j = 0; j < group; j++) {
        v.v[j % 4] = s.number(held[r], j);
        if (ROUND) v.v[j % 4] = __uint_as_float(tf32(v.v[j % 4]));
        if (ALONG)
          tile[column + j][row] = v.v[j % 4];
        else if (j % 4 == 3)
          store4(&tile[row][column + j - 3], v);
      }
    }
  }
};

// Tiles is the shared memory of a block: a tile of each factor that is multiplied, and the next.
template <int A, int B> struct Tiles {
  __align__(16) float a[2][BK][A], b[2][BK][B];
};

// Side is a side of a tile, divided among COUNT threads with EACH numbers: whole fours, each loaded
// at once, and then the rest.
template <int COUNT, int EACH> struct Side {
  static constexpr int count = COUNT, each = EACH, numbers = COUNT * EACH, fours = EACH / 4, rest = EACH % 4;
  // at returns the place of number i of a thread.
  static __device__ int at(int thread, int i) {
    return i < 4 * fours ? i / 4 * 4 * COUNT + 4 * thread + i % 4 : 4 * fours * COUNT + rest * thread + i % 4;
  }
  static __device__ void load(float (&to)[EACH], const float *row, int thread) {
#pragma unroll
    for (int f = 0; f < fours; f++) {
      const Four four = load4(row + at(thread, 4 * f));
#pragma unroll
      for (int j = 0; j < 4; j++) to[4 * f + j] = four.v[j];
    }
#pragma unroll
    for (int i = 4 * fours; i < EACH; i++) to[i] = row[at(thread, i)];
  }
};

// Span is the products from..to-1 of a block.
struct Span {
  int from, to;
};

// chunk_of returns chunk c of k products, the longer ones first.
__device__ inline Span chunk_of(int c, int chunks, int k) {
  const int each = k / chunks, longer = k % chunks, from = c * each + (c < longer ? c : longer);
  return {from, from + each + (c < longer ? 1 : 0)};
}

// Exact is the elements of C of a thread: sums of products by fma, one after the other. A warp has
// 4×8 threads, arranged so that both lanes of a pair load the same numbers of A, and lanes two
// apart the same of B: then the hardware reads shared memory twice for a load of 16 bytes, not four
// times.
template <class ROWS, class COLUMNS> struct Exact {
  typedef ROWS Rows;
  typedef COLUMNS Columns;
  static constexpr int rows = Rows::numbers, columns = Columns::numbers, threads = Rows::count * Columns::count;
  static constexpr int pad = 4;
  static constexpr bool rounds = false;
  float s[Rows::each][Columns::each] = {};
  int down, across;

  __device__ Exact(u32 thread) {
    const int lane = thread % WARP, warp = thread / WARP;
    down = (lane >> 1 & 1) + (lane >> 3 & 2) + warp / (Columns::count / 8) * 4;
    across = (lane & 1) + (lane >> 1 & 6) + warp % (Columns::count / 8) * 8;
  }
  __device__ int row(int i) const { return Rows::at(down, i); }
  __device__ int column(int j) const { return Columns::at(across, j); }

  template <int A, int B> __device__ void multiply(const float (&a)[BK][A], const float (&b)[BK][B], int q) {
    float x[Rows::each], y[Columns::each];
    Rows::load(x, a[q], down);
    Columns::load(y, b[q], across);
#pragma unroll
    for (int i = 0; i < Rows::each; i++)
#pragma unroll
      for (int j = 0; j < Columns::each; j++) s[i][j] = fmaf(x[i], y[j], s[i][j]);
  }
  // add adds products from..to-1 of a tile. Others may be the zero padding of a tile, which could
  // turn -0 into +0.
  template <int A, int B> __device__ void add(const float (&a)[BK][A], const float (&b)[BK][B], int from, int to) {
    if (from == 0 && to == BK) {
#pragma unroll 8
      for (int q = 0; q < BK; q++) multiply(a, b, q);
    } else {
#pragma unroll 1
      for (int q = from; q < to; q++) multiply(a, b, q);
    }
  }
  template <int A, int B>
  __device__ void add_tile(const float (&a)[BK][A], const float (&b)[BK][B], int p, const Span &k) {
    add(a, b, k.from > p ? k.from - p : 0, k.to - p < BK ? k.to - p : BK);
  }
};

// Chunked is an Exact of any number of products.
template <class ROWS, class COLUMNS> struct Chunked : Exact<ROWS, COLUMNS> {
  float all[ROWS::each][COLUMNS::each];
  int chunks, chunk = 0;
  Span span; // of the chunk
  using Exact<ROWS, COLUMNS>::s;

  __device__ Chunked(u32 thread, int k)
      : Exact<ROWS, COLUMNS>(thread), chunks((k + DEPTH - 1) / DEPTH), span(chunk_of(0, chunks, k)) {}
  template <int A, int B>
  __device__ void add_tile(const float (&a)[BK][A], const float (&b)[BK][B], int p, const Span &k) {
    const int count = k.to - p < BK ? k.to - p : BK;
    for (int q = 0; q < count;) {
      const int stop = span.to - p < count ? span.to - p : count;
      this->add(a, b, q, stop);
      q = stop;
      if (p + q < span.to) break;
#pragma unroll
      for (int i = 0; i < ROWS::each; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS::each; j++) all[i][j] = chunk == 0 ? s[i][j] : s[i][j] + all[i][j], s[i][j] = 0.0f;
      span = chunk_of(++chunk, chunks, k.to);
    }
  }
};

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

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define TENSOR_CORES 0 // GPUs below sm_80 have no TF32 and use float32
#else
#define TENSOR_CORES 1
#endif

#define TC_SIDE 64 // side of a block's tile of C

// TensorCore is the elements of C of a thread on tensor cores, with the factors rounded to TF32. A
// warp computes 16 rows. It adds whole tiles.
struct TensorCore {
  static constexpr int rows = TC_SIDE, columns = TC_SIDE, threads = 2 * TC_SIDE;
  static constexpr int pad = 8; // avoids bank conflicts between the lanes of a fragment
  static constexpr bool rounds = TENSOR_CORES;
  float s[TC_SIDE / 8][4] = {};
  int g, t, mine;

  __device__ TensorCore(u32 thread) : g(thread % WARP / 4), t(thread % 4), mine(thread / WARP * 16) {}
  __device__ int row(int r) const { return mine + g + r / 2 * 8; }
  __device__ int column(int j, int r) const { return 8 * j + 2 * t + r % 2; }

  template <int A, int B>
  __device__ void add_tile(const float (&a)[BK][A], const float (&b)[BK][B], int, const Span &) {
#if !TENSOR_CORES
    for (int q = 0; q < BK; q++)
#pragma unroll
      for (int j = 0; j < TC_SIDE / 8; j++)
#pragma unroll
        for (int r = 0; r < 4; r++) s[j][r] = fmaf(a[q][row(r)], b[q][column(j, r)], s[j][r]);
#else
#pragma unroll
    for (int q = 0; q < BK; q += 8) {
      const float *u = &a[q + t][mine + g], *v = &a[q + t + 4][mine + g];
      const u32 fa[4] = {__float_as_uint(u[0]), __float_as_uint(u[8]), __float_as_uint(v[0]), __float_as_uint(v[8])};
#pragma unroll
      for (int j = 0; j < TC_SIDE / 8; j++) {
        const u32 fb[2] = {__float_as_uint(b[q + t][8 * j + g]), __float_as_uint(b[q + t + 4][8 * j + g])};
        mma_tf32(s[j], fa, fb);
      }
    }
#endif
  }
};

// Place is a block's place in C.
struct Place {
  int row, column;
};

// multiply adds the products of a span to the elements of a block at a place of the m×n matrix.
template <bool A_ALONG, bool B_ALONG, class Core, class Block, class SA, class SB>
__device__ inline void multiply(const Block &block, Core &core, const SA &a, const SB &b, const Place &at, int m, int n,
                                int k, const Span &span) {
  auto &tiles = shared_of<Tiles<Core::rows + Core::pad, Core::columns + Core::pad>>(block);
  const u32 thread = block.thread();
  Loader<Core::rows, Core::threads, A_ALONG, SA> la;
  Loader<Core::columns, Core::threads, B_ALONG, SB> lb;
  const int first = span.from & ~(BK - 1); // rows are loaded in groups from there
  la.begin(a, thread, at.row, m, first, k);
  lb.begin(b, thread, at.column, n, first, k);
  la.fetch(a, thread, at.row, m, first, k, true);
  lb.fetch(b, thread, at.column, n, first, k, true);
  block.sync();
  for (int p = first; p < span.to; p += BK) {
    auto &ta = tiles.a[p / BK % 2];
    auto &tb = tiles.b[p / BK % 2];
    la.template put<Core::rounds>(a, thread, ta);
    lb.template put<Core::rounds>(b, thread, tb);
    block.sync(); // one for each tile: all have multiplied the last but one
    la.fetch(a, thread, at.row, m, p + BK, k, p + BK < span.to); // loads overlap with the products
    lb.fetch(b, thread, at.column, n, p + BK, k, p + BK < span.to);
    core.add_tile(ta, tb, p, span);
  }
}

// Product selects a product by template arguments: n stands for a factor as stored and t for a
// transposed one, so nt is A·Bᵀ. make computes a block's elements of C.
template <class ROWS, class COLUMNS, bool A_ALONG, bool B_ALONG> struct ExactProduct {
  static constexpr bool a_along = A_ALONG, b_along = B_ALONG;
  template <class Block, class SA, class SB>
  static __device__ void make(const Block &block, const SA &a, const SB &b, float *c, const float *aux, int m, int n,
                              int k, int epilogue, float factor) {
    typedef Chunked<ROWS, COLUMNS> Core;
    Core core(block.thread(), k);
    const Place at = {(int)block.y() * Core::rows, (int)block.x() * Core::columns};
    multiply<A_ALONG, B_ALONG>(block, core, a, b, at, m, n, k, Span{0, k});
#pragma unroll 1 // the epilogue's code is long: shift registers instead of unrolling
    for (int i = 0; i < ROWS::each; i++) {
#pragma unroll
      for (int j = 0; j < COLUMNS::each; j++) {
        const int y = at.row + core.row(i), x = at.column + core.column(j);
        if (y < m && x < n) c[(i64)y * n + x] = apply_epilogue(epilogue, core.all[0][j], aux, (i64)y * n + x, x, factor);
#pragma unroll
        for (int l = 1; l < ROWS::each; l++) core.all[l - 1][j] = core.all[l][j];
      }
    }
  }
};
template <bool A_ALONG, bool B_ALONG> struct TensorCoreProduct {
  static constexpr bool a_along = A_ALONG, b_along = B_ALONG;
  template <class Block, class SA, class SB>
  static __device__ void make(const Block &block, const SA &a, const SB &b, float *c, const float *aux, int m, int n,
                              int k, int epilogue, float factor) {
    TensorCore core(block.thread());
    const Place at = {(int)block.y() * TC_SIDE, (int)block.x() * TC_SIDE};
    multiply<A_ALONG, B_ALONG>(block, core, a, b, at, m, n, k, Span{0, k});
#pragma unroll 1
    for (int j = 0; j < TC_SIDE / 8; j++)
#pragma unroll
      for (int r = 0; r < 4; r++) {
        const int y = at.row + core.row(r), x = at.column + core.column(j, r);
        if (y < m && x < n) c[(i64)y * n + x] = apply_epilogue(epilogue, core.s[0][r], aux, (i64)y * n + x, x, factor);
#pragma unroll
        for (int l = 1; l < TC_SIDE / 8; l++) core.s[l - 1][r] = core.s[l][r];
      }
  }
};
typedef ExactProduct<Side<8, 4>, Side<8, 4>, true, true> SmallNT;
typedef ExactProduct<Side<8, 4>, Side<8, 4>, true, false> SmallNN;
typedef ExactProduct<Side<8, 4>, Side<8, 4>, false, false> SmallTN;
typedef ExactProduct<Side<16, 4>, Side<16, 4>, true, true> LargeNT;
typedef ExactProduct<Side<16, 4>, Side<16, 4>, true, false> LargeNN;
typedef ExactProduct<Side<16, 4>, Side<16, 4>, false, false> LargeTN;
typedef TensorCoreProduct<true, true> TensorCoreNT;
typedef TensorCoreProduct<true, false> TensorCoreNN;
typedef TensorCoreProduct<false, false> TensorCoreTN;

template <class Product, class Block> __device__ inline void gemm_of(const Block &block, OPERAND(const float, a),
                                                                     OPERAND(const float, b), OPERAND(float, c),
                                                                     OPERAND(const float, aux), int m, int n, int k,
                                                                     int epilogue, float factor) {
  Product::make(block, Matrix{AGENT(block, a), Product::a_along ? k : m},
                Matrix{AGENT(block, b), Product::b_along ? k : n}, AGENT(block, c), AGENT(block, aux), m, n, k,
                epilogue, factor);
}

// gemm_nt_bytes_of multiplies with a byte matrix A: the m rows of agent z are rows[z·m..].
template <class Product, class Block>
__device__ inline void gemm_nt_bytes_of(const Block &block, const u8 *bytes, const int *rows, float scale, float shift,
                                        OPERAND(const float, b), OPERAND(float, c), OPERAND(const float, aux), int m,
                                        int n, int k, int epilogue, float factor) {
  Product::make(block, ByteMatrix{bytes, rows + (i64)block.z() * m, k, scale, shift}, Matrix{AGENT(block, b), k},
                AGENT(block, c), AGENT(block, aux), m, n, k, epilogue, factor);
}

// gemm_tn_bytes_of multiplies with a byte matrix B: the k rows of agent z are rows[z·k..].
template <class Product, class Block>
__device__ inline void gemm_tn_bytes_of(const Block &block, OPERAND(const float, a), const u8 *bytes, const int *rows,
                                        float scale, float shift, OPERAND(float, c), OPERAND(const float, aux), int m,
                                        int n, int k, int epilogue, float factor) {
  Product::make(block, Matrix{AGENT(block, a), m}, ByteMatrix{bytes, rows + (i64)block.z() * k, n, scale, shift},
                AGENT(block, c), AGENT(block, aux), m, n, k, epilogue, factor);
}

// ChunkNT and WideTN are the products of the first layer of a small network, where the numbers of
// a batch are bytes. A tile of 64×112, 56 elements per thread, multiplies as often as it loads from
// shared memory permits, and fills the multiprocessors of an H100 once for 10 agents with batches
// of 256 and 100 neurons.
typedef Exact<Side<8, 8>, Side<16, 7>> WideNT;
typedef Exact<Side<16, 7>, Side<8, 8>> WideTN;

// span_of returns the products of a part of k.
template <class R, class C> __device__ inline Span span_of(const Exact<R, C> &, int c, int chunks, int k) {
  return chunk_of(c, chunks, k);
}
__device__ inline Span span_of(const TensorCore &, int c, int chunks, int k) {
  const int each = (k + chunks * BK - 1) / (chunks * BK) * BK, to = (c + 1) * each;
  return {c * each < k ? c * each : k, to < k ? to : k};
}

__device__ inline void store_all(const TensorCore &core, float *c, const Place &at, int m, int n) {
#pragma unroll
  for (int j = 0; j < TC_SIDE / 8; j++)
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const int y = at.row + core.row(r), x = at.column + core.column(j, r);
      if (y < m && x < n) c[(i64)y * n + x] = core.s[j][r];
    }
}
template <class R, class C>
__device__ inline void store_all(const Exact<R, C> &core, float *c, const Place &at, int m, int n) {
#pragma unroll
  for (int i = 0; i < R::each; i++)
#pragma unroll
    for (int j = 0; j < C::each; j++) {
      const int y = at.row + core.row(i), x = at.column + core.column(j);
      if (y < m && x < n) c[(i64)y * n + x] = core.s[i][j];
    }
}

// gemm_nt_bytes_parts_of computes the summands of an m×n product with a byte matrix A, one for each
// of `parts` parts of k, which lie along x: summand p of agent z is at part + (z·parts + p)·m·n.
// With an Exact, parts must be the number of chunks.
template <class Core, class Block>
__device__ inline void gemm_nt_bytes_parts_of(const Block &block, const u8 *bytes, const int *rows, float scale,
                                              float shift, OPERAND(const float, b), float *part, int parts, int m,
                                              int n, int k) {
  Core core(block.thread());
  const int tiles = (n + Core::columns - 1) / Core::columns, p = block.x() / tiles;
  const Place at = {(int)block.y() * Core::rows, (int)(block.x() % tiles) * Core::columns};
  multiply<true, true>(block, core, ByteMatrix{bytes, rows + (i64)block.z() * m, k, scale, shift},
                       Matrix{AGENT(block, b), k}, at, m, n, k, span_of(core, p, parts, k));
  store_all(core, part + ((i64)block.z() * parts + p) * m * n, at, m, n);
}

// gemm_tn_bytes_wide_of is gemm_tn_bytes_of for at most DEPTH products, with no epilogue or
// ADD_SCALED, whose operand it loads at once.
template <class Block>
__device__ inline void gemm_tn_bytes_wide_of(const Block &block, OPERAND(const float, a), const u8 *bytes,
                                             const int *rows, float scale, float shift, OPERAND(float, c),
                                             OPERAND(const float, aux), int m, int n, int k, int epilogue,
                                             float factor) {
  WideTN core(block.thread());
  const Place at = {(int)block.y() * WideTN::rows, (int)block.x() * WideTN::columns};
  multiply<false, false>(block, core, Matrix{AGENT(block, a), m},
                         ByteMatrix{bytes, rows + (i64)block.z() * k, n, scale, shift}, at, m, n, k, Span{0, k});
  if (epilogue == ADD_SCALED) {
    const float *w = AGENT(block, aux);
    float v[WideTN::Rows::each][WideTN::Columns::each];
#pragma unroll
    for (int i = 0; i < WideTN::Rows::each; i++)
#pragma unroll
      for (int j = 0; j < WideTN::Columns::each; j++) {
        const int y = at.row + core.row(i), x = at.column + core.column(j);
        v[i][j] = y < m && x < n ? w[(i64)y * n + x] : 0.0f;
      }
#pragma unroll
    for (int i = 0; i < WideTN::Rows::each; i++)
#pragma unroll
      for (int j = 0; j < WideTN::Columns::each; j++) core.s[i][j] = core.s[i][j] + factor * v[i][j];
  }
  store_all(core, AGENT(block, c), at, m, n);
}
