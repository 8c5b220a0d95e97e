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

#define CHUNK 384 // products per chunk
#define BK 16     // depth of a tile
#define WIDE_BK 32 // depth of a tile of a wide product

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
  typedef u32 Index; // a matrix has fewer than 2³² numbers
  const float *p;
  int width;
  __device__ float at(int i, int j) const { return p[(i64)i * width + j]; }
  __device__ bool grouped() const { return aligned16(address(p)) && width % group == 0; }
  __device__ int stored_row(int i) const { return i; }
  __device__ Index start(int row) const { return (u32)row * (u32)width; }
  __device__ void load(Raw &to, Index from) const { to = load4(p + from); }
  __device__ void load_one(Raw &to, int j, Index from) const { to.v[j] = p[from]; }
  __device__ float number(const Raw &of, int j) const { return of.v[j]; }
};

// ByteMatrix is a matrix stored as bytes. The number of a byte is byte·scale + shift, the product
// rounded first. Row i is row rows[i] of the bytes.
struct ByteMatrix {
  static constexpr int group = 8;
  struct Raw {
    u32 v[2];
  };
  typedef i64 Index;
  const u8 *bytes;
  const int *rows;
  int width;
  float scale, shift;
  __device__ float at(int i, int j) const { return (float)bytes[(i64)rows[i] * width + j] * scale + shift; }
  __device__ bool grouped() const { return ((address(bytes) | (u64)width) & 7) == 0; }
  __device__ int stored_row(int i) const { return rows[i]; }
  __device__ Index start(int row) const { return (i64)row * width; }
  __device__ void load(Raw &to, i64 from) const {
    const uint2 words = *(const uint2 *)(bytes + from);
    to.v[0] = words.x, to.v[1] = words.y;
  }
  __device__ void load_one(Raw &to, int j, i64 from) const { to.v[j / 4] |= (u32)bytes[from] << 8 * (j % 4); }
  __device__ float number(const Raw &of, int j) const {
    return (float)(of.v[j / 4] >> 8 * (j % 4) & 0xff) * scale + shift;
  }
};

// FactorTile is DEPTH products of SIDE rows or columns in shared memory: along k, or with the
// numbers of one product adjacent. Behind the last product is space that is read ahead.
template <int SIDE, int DEPTH, bool ALONG, int PAD> struct FactorTile {
  static constexpr int side = SIDE, depth = DEPTH;
  static constexpr bool along = ALONG;
  __align__(16) float v[ALONG ? SIDE : DEPTH + 1][(ALONG ? DEPTH : SIDE) + PAD];
  __device__ float *operator[](int row) { return v[row]; }
  __device__ const float *operator[](int row) const { return v[row]; }
};

// Loader loads a tile, and transposes it if the rows of the operand run along k, which ALONG says,
// and the tile's do not. It holds what it loads as it is stored, and converts it when the tile is
// written, so that no instruction waits for a load before the products of the tile before. Nor does
// a load wait for another: the stored row of each number is known one tile ahead.
//
// Numbers that cannot be loaded in groups are loaded one by one; those of a deep tile when it is
// written, which is slower but less code.
//
// Rows and columns outside the operand hold numbers of its edge, because no element of C depends on
// them. Products outside it are zero if ZERO, else undefined.
template <class TILE, int THREADS, bool ALONG, bool ZERO, class Source> struct Loader {
  static constexpr int SIDE = TILE::side, DEPTH = TILE::depth;
  static constexpr int group = Source::group, across = (ALONG ? DEPTH : SIDE) / group;
  static constexpr int groups = SIDE * DEPTH / group, each = (groups + THREADS - 1) / THREADS;
  static constexpr bool deep = DEPTH > BK;
  static_assert(DEPTH % group == 0 && SIDE % group == 0, "a row of a tile is whole groups");
  static_assert(ALONG || !TILE::along, "a tile along k needs an operand along k");
  static_assert(!deep || ALONG == TILE::along, "a deep tile is not transposed");
  typename Source::Raw held[each];
  int stored[each]; // row
  bool grouped;

  // mine reports whether the thread has an r-th group.
  static __device__ bool mine(u32 thread, int r) { return groups % THREADS == 0 || thread + r * THREADS < groups; }
  static __device__ int row(u32 thread, int r) { return (int)(thread + r * THREADS) / across; }
  static __device__ int column(u32 thread, int r) { return (int)(thread + r * THREADS) % across * group; }
  // place is the first product of the group within the tile.
  static __device__ int place(u32 thread, int r) { return ALONG ? column(thread, r) : row(thread, r); }

  // begin prepares to fetch rows first.. and products from..; most and k are the numbers of both.
  ALWAYS_INLINE void begin(const Source &s, u32 thread, int first, int most, int from, int k) {
    grouped = s.grouped();
#pragma unroll
    for (int r = 0; r < each; r++) {
      const int i = first + row(thread, r);
      held[r] = {};
      if (ALONG)
        stored[r] = s.stored_row(i < most ? i : most - 1);
      else
        find(s, thread, r, from, k);
    }
  }
  __device__ void find(const Source &s, u32 thread, int r, int from, int k) {
    const int p = from + row(thread, r);
    stored[r] = s.stored_row(p < k ? p : k - 1);
  }
  __device__ void find_all(const Source &s, u32 thread, int from, int k) {
    if (!ALONG)
#pragma unroll
      for (int r = 0; r < each; r++) find(s, thread, r, from, k);
  }

  // fetch loads products from.. into registers, unless they are not wanted; calls come tile after
  // tile. The rows of the next tile are found in the same branch that has used those of this one:
  // behind both branches, the compiler for sm_70 waited for all loads before it found them.
  ALWAYS_INLINE void fetch(const Source &s, u32 thread, int first, int most, int from, int k, bool wanted) {
    const int limit = wanted ? k - from : 0;
    if (grouped) {
#pragma unroll
      for (int r = 0; r < each; r++) {
        const int i = first + column(thread, r), edge = i < most - group ? i : most - group;
        if (ZERO) held[r] = {};
        if (mine(thread, r) && place(thread, r) < limit)
          s.load(held[r], s.start(stored[r]) + (ALONG ? from + column(thread, r) : edge));
      }
      find_all(s, thread, from + DEPTH, k);
    } else if (!deep) {
#pragma unroll
      for (int r = 0; r < each; r++) {
        const int i = column(thread, r);
        held[r] = {};
#pragma unroll
        for (int j = 0; j < group; j++)
          if (mine(thread, r) && place(thread, r) + (ALONG ? j : 0) < limit && (ALONG || first + i + j < most))
            s.load_one(held[r], j, s.start(stored[r]) + (ALONG ? from : first) + i + j);
      }
      find_all(s, thread, from + DEPTH, k);
    }
  }
  // put writes the tile of products from.., rounded to TF32 if ROUND.
  template <bool ROUND>
  ALWAYS_INLINE void put(const Source &s, u32 thread, TILE &tile, int first, int most, int from, int k) const {
    if (deep && !grouped) {
      constexpr int wide = ALONG ? DEPTH : SIDE;
#pragma unroll 1
      for (int e = thread; e < SIDE * DEPTH; e += THREADS) {
        const int i = (ALONG ? first : from) + e / wide, j = (ALONG ? from : first) + e % wide;
        tile[e / wide][e % wide] = i < (ALONG ? most : k) && j < (ALONG ? k : most) ? s.at(i, j) : 0.0f;
      }
      return;
    }
#pragma unroll
    for (int r = 0; r < each; r++) {
      const int at = row(thread, r), i = column(thread, r);
      if (!mine(thread, r)) break;
      Four v;
#pragma unroll
      for (int j = 0; j < group; j++) {
        v.v[j % 4] = s.number(held[r], j);
        if (ROUND) v.v[j % 4] = __uint_as_float(tf32(v.v[j % 4]));
        if (ALONG && !TILE::along)
          tile[i + j][at] = v.v[j % 4];
        else if (j % 4 == 3)
          store4(&tile[at][i + j - 3], v);
      }
    }
  }
};

// Tiles is the shared memory of a block: STAGES tiles of each factor.
template <class A, class B, int STAGES> struct Tiles {
  A a[STAGES];
  B b[STAGES];
};

// Side is a side of a tile, divided among COUNT threads with EACH numbers: whole fours, each loaded
// at once, then a pair and a last number where there are some.
template <int COUNT, int EACH> struct Side {
  static constexpr int count = COUNT, each = EACH, numbers = COUNT * EACH, fours = EACH / 4, pair = EACH % 4 / 2;
  // at returns the place of number i of a thread.
  static __device__ int at(int thread, int i) {
    if (i < 4 * fours) return i / 4 * 4 * COUNT + 4 * thread + i % 4;
    if (i < 4 * fours + 2 * pair) return 4 * fours * COUNT + 2 * thread + i % 2;
    return (EACH - 1) * COUNT + thread;
  }
  static __device__ void load(float (&to)[EACH], const float *row, int thread) {
#pragma unroll
    for (int f = 0; f < fours; f++) {
      const Four four = load4(row + at(thread, 4 * f));
#pragma unroll
      for (int j = 0; j < 4; j++) to[4 * f + j] = four.v[j];
    }
    if (pair) {
      const float2 two = *(const float2 *)(row + at(thread, 4 * fours));
      to[4 * fours] = two.x, to[4 * fours + pair] = two.y;
    }
    if (EACH % 2) to[EACH - 1] = row[at(thread, EACH - 1)];
  }
};

// Strided is a side of a tile along k: number i of a thread lies i·COUNT rows further, so that
// threads side by side have rows side by side.
template <int COUNT, int EACH> struct Strided {
  static constexpr int count = COUNT, each = EACH, numbers = COUNT * EACH;
  static __device__ int at(int thread, int i) { return thread + i * COUNT; }
};

// Span is the products from..to-1 of a block.
struct Span {
  int from, to;
};

// chunk_of returns chunk c of k products, the longer ones first.
__device__ inline Span chunk_of(u32 c, u32 chunks, u32 k) {
  const u32 each = k / chunks, longer = k % chunks, from = c * each + (c < longer ? c : longer);
  return {(int)from, (int)(from + each + (c < longer ? 1 : 0))};
}

// Elements is the elements of C of a thread. A warp has 4×8 threads, arranged so that both lanes of
// a pair load the same numbers of A, and lanes two apart the same of B: then the hardware reads
// shared memory twice for a load of 16 bytes, not four times.
template <class ROWS, class COLUMNS> struct Elements {
  typedef ROWS Rows;
  typedef COLUMNS Columns;
  static constexpr int rows = Rows::numbers, columns = Columns::numbers, threads = Rows::count * Columns::count;
  static constexpr bool rounds = false, whole = false;
  float s[Rows::each][Columns::each] = {};
  int down, across;

  __device__ Elements(u32 thread) {
    const int lane = thread % WARP, warp = thread / WARP;
    down = (lane >> 1 & 1) + (lane >> 3 & 2) + warp / (Columns::count / 8) * 4;
    across = (lane & 1) + (lane >> 1 & 6) + warp % (Columns::count / 8) * 8;
  }
  __device__ int row(int i) const { return Rows::at(down, i); }
  __device__ int column(int j) const { return Columns::at(across, j); }
};

// add_products adds products from..to-1 of a tile to a core. Others are undefined.
template <class Core, class A, class B>
__device__ inline void add_products(Core &core, const A &a, const B &b, int from, int to) {
#pragma unroll 1
  for (int q = from; q < to;) {
    const int stop = q % 8 == 0 ? to & ~7 : 0;
    if (q < stop)
      core.add_eights(a, b, q, stop), q = stop;
    else
      core.add_one(a, b, q), q++;
  }
}

// Exact adds products by fma, one after the other, of tiles with the numbers of one product
// adjacent.
template <class ROWS, class COLUMNS, int DEPTH = BK, int STAGES = 2> struct Exact : Elements<ROWS, COLUMNS> {
  static constexpr int depth = DEPTH, stages = STAGES;
  typedef FactorTile<ROWS::numbers, DEPTH, false, 4> A;
  typedef FactorTile<COLUMNS::numbers, DEPTH, false, 4> B;
  // Factors is the numbers of a product.
  struct Factors {
    float x[ROWS::each], y[COLUMNS::each];
  };
  using Elements<ROWS, COLUMNS>::s;
  using Elements<ROWS, COLUMNS>::Elements;

  __device__ void load(Factors &f, const A &a, const B &b, int q) const {
    ROWS::load(f.x, a[q], this->down);
    COLUMNS::load(f.y, b[q], this->across);
  }
  __device__ void multiply(const Factors &f) {
#pragma unroll
    for (int i = 0; i < ROWS::each; i++)
#pragma unroll
      for (int j = 0; j < COLUMNS::each; j++) s[i][j] = fmaf(f.x[i], f.y[j], s[i][j]);
  }
  __device__ void add_one(const A &a, const B &b, int q) {
    Factors f;
    load(f, a, b, q);
    multiply(f);
  }
  // add_eights adds whole eights. The numbers of the next product are loaded during each.
  ALWAYS_INLINE void add_eights(const A &a, const B &b, int from, int to) {
    Factors f[2];
    load(f[0], a, b, from);
#pragma unroll 1
    for (int q = from; q < to; q += 8) {
#pragma unroll
      for (int e = 0; e < 8; e++) {
        load(f[(e + 1) % 2], a, b, q + e + 1);
        multiply(f[e % 2]);
      }
    }
  }
  ALWAYS_INLINE void add_tile(const A &a, const B &b, int p, const Span &k) {
    add_products(*this, a, b, k.from > p ? k.from - p : 0, k.to - p < DEPTH ? k.to - p : DEPTH);
  }
};

// ExactAlong adds products by fma, one after the other, of tiles along k. It loads four products of
// a row at once.
template <class ROWS, class COLUMNS, int DEPTH, int STAGES> struct ExactAlong : Elements<ROWS, COLUMNS> {
  static constexpr int depth = DEPTH, stages = STAGES;
  typedef FactorTile<ROWS::numbers, DEPTH, true, 4> A;
  typedef FactorTile<COLUMNS::numbers, DEPTH, true, 4> B;
  typedef Four Factors[ROWS::each]; // four numbers of each row
  using Elements<ROWS, COLUMNS>::s;
  using Elements<ROWS, COLUMNS>::Elements;

  __device__ void load(Factors &x, const A &a, int q) const {
#pragma unroll
    for (int i = 0; i < ROWS::each; i++) x[i] = load4(a[this->row(i)] + q);
  }
  // multiply adds four products, and replaces y by the numbers from q on.
  __device__ void multiply(const Factors &x, Four (&y)[COLUMNS::each], const B &b, int q) {
#pragma unroll
    for (int j = 0; j < COLUMNS::each; j++) {
#pragma unroll
      for (int e = 0; e < 4; e++)
#pragma unroll
        for (int i = 0; i < ROWS::each; i++) s[i][j] = fmaf(x[i].v[e], y[j].v[e], s[i][j]);
      y[j] = load4(b[this->column(j)] + q);
    }
  }
  __device__ void add_one(const A &a, const B &b, int q) {
    float y[COLUMNS::each];
#pragma unroll
    for (int j = 0; j < COLUMNS::each; j++) y[j] = b[this->column(j)][q];
#pragma unroll
    for (int i = 0; i < ROWS::each; i++) {
      const float x = a[this->row(i)][q];
#pragma unroll
      for (int j = 0; j < COLUMNS::each; j++) s[i][j] = fmaf(x, y[j], s[i][j]);
    }
  }
  // add_eights adds whole eights. The numbers of the next four products are loaded during each four;
  // behind the last four of a tile these are the padding.
  ALWAYS_INLINE void add_eights(const A &a, const B &b, int from, int to) {
    Factors x[2];
    Four y[COLUMNS::each];
    load(x[0], a, from);
#pragma unroll
    for (int j = 0; j < COLUMNS::each; j++) y[j] = load4(b[this->column(j)] + from);
#pragma unroll 1
    for (int q = from; q < to; q += 8) {
      load(x[1], a, q + 4);
      multiply(x[0], y, b, q + 4);
      load(x[0], a, q + 8);
      multiply(x[1], y, b, q + 8);
    }
  }
  ALWAYS_INLINE void add_tile(const A &a, const B &b, int p, const Span &k) {
    add_products(*this, a, b, k.from > p ? k.from - p : 0, k.to - p < DEPTH ? k.to - p : DEPTH);
  }
};

// Chunked is an Exact of any number of products.
template <class ROWS, class COLUMNS> struct Chunked : Exact<ROWS, COLUMNS> {
  float all[ROWS::each][COLUMNS::each] = {};
  int chunks, chunk = 0;
  Span span; // of the chunk
  using Exact<ROWS, COLUMNS>::s;
  using typename Exact<ROWS, COLUMNS>::A;
  using typename Exact<ROWS, COLUMNS>::B;

  __device__ Chunked(u32 thread, int k)
      : Exact<ROWS, COLUMNS>(thread), chunks((k + CHUNK - 1) / CHUNK), span(chunk_of(0, chunks, k)) {}
  ALWAYS_INLINE void add_tile(const A &a, const B &b, int p, const Span &k) {
    const int count = k.to - p < BK ? k.to - p : BK;
    for (int q = 0; q < count;) {
      const int stop = span.to - p < count ? span.to - p : count;
      add_products<Exact<ROWS, COLUMNS>>(*this, a, b, q, stop);
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
// mma_tf32 multiplies 16×8 by 8×8 numbers in a warp; internal/testing/hostrun/host.h describes which numbers a lane
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
// warp computes 16 rows.
struct TensorCore {
  static constexpr int rows = TC_SIDE, columns = TC_SIDE, threads = 2 * TC_SIDE;
  static constexpr int depth = BK, stages = 2;
  typedef FactorTile<TC_SIDE, BK, false, 8> A; // the padding avoids bank conflicts between the lanes of a fragment
  typedef A B;
  static constexpr bool rounds = TENSOR_CORES, whole = true; // it adds whole tiles
  float s[TC_SIDE / 8][4] = {};
  int g, t, mine;

  __device__ TensorCore(u32 thread) : g(thread % WARP / 4), t(thread % 4), mine(thread / WARP * 16) {}
  __device__ int row(int r) const { return mine + g + r / 2 * 8; }
  __device__ int column(int j, int r) const { return 8 * j + 2 * t + r % 2; }

  ALWAYS_INLINE void add_tile(const A &a, const B &b, int, const Span &) {
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
  auto &tiles = shared_of<Tiles<typename Core::A, typename Core::B, Core::stages>>(block);
  const u32 thread = block.thread();
  Loader<typename Core::A, Core::threads, A_ALONG, Core::whole, SA> la;
  Loader<typename Core::B, Core::threads, B_ALONG, Core::whole, SB> lb;
  const int first = span.from & ~7; // rows are loaded in groups from there
  la.begin(a, thread, at.row, m, first, k);
  lb.begin(b, thread, at.column, n, first, k);
  la.fetch(a, thread, at.row, m, first, k, true);
  lb.fetch(b, thread, at.column, n, first, k, true);
  if (Core::stages > 1) block.sync();
#pragma unroll 1
  for (int p = first, stage = 0; p < span.to; p += Core::depth, stage = (stage + 1) % Core::stages) {
    auto &ta = tiles.a[stage];
    auto &tb = tiles.b[stage];
    if (Core::stages == 1) block.sync(); // all have multiplied the last tile
    la.template put<Core::rounds>(a, thread, ta, at.row, m, p, k);
    lb.template put<Core::rounds>(b, thread, tb, at.column, n, p, k);
    block.sync(); // with two stages the only one for a tile: all have multiplied the last but one
    const int next = p + Core::depth;
    // Loads overlap with the products. Those of b come first, since they may wait for their rows.
    lb.fetch(b, thread, at.column, n, next, k, next < span.to);
    la.fetch(a, thread, at.row, m, next, k, next < span.to);
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

#define COLUMN_PARTS 8 // lanes of a column
#define COLUMN_AHEAD 16 // numbers of a column that a lane has in flight
#define COLUMN_THREADS 64
#define COLUMN_BLOCK 8 // columns of a block of COLUMN_THREADS

// ColumnLane is a lane of a sum over the rows of a matrix, for each of its columns. Lanes 4·p to 4·p + 3
// have part p of four columns: rows p, p + COLUMN_PARTS and so on, added in this order. Then the parts are
// added in a tree.
struct ColumnLane {
  int column, part;
  template <class Block> __device__ ColumnLane(const Block &block) {
    const int thread = block.thread();
    column = (int)block.x() * COLUMN_BLOCK + thread / WARP * 4 + thread % 4;
    part = thread % WARP / 4;
  }
  // load loads numbers of the part from row i on of m. Numbers behind the last row are the last, since
  // loads with conditions are not all in flight.
  ALWAYS_INLINE void load(float (&v)[COLUMN_AHEAD], const float *column_of, int i, int m, int stride) const {
    const u32 from = (u32)i * (u32)stride, last = (u32)(m - 1) * (u32)stride;
#pragma unroll
    for (int e = 0; e < COLUMN_AHEAD; e++) v[e] = column_of[min(from + (u32)(e * COLUMN_PARTS) * (u32)stride, last)];
  }
  template <class T> __device__ T add_parts(T s) const {
#pragma unroll
    for (int apart = WARP / 2; apart >= WARP / COLUMN_PARTS; apart /= 2)
      s = s + __shfl_xor_sync(ALL_LANES, s, apart);
    return s;
  }
};

#define NARROW_ROWS 8 // rows of C of a block, kernels.narrowRows

struct NarrowMemory {
  __align__(16) float a[CHUNK][NARROW_ROWS];
};

// gemm_tn_narrow_of: C = Aᵀ·B, or with factor·aux added, for few rows of C, so that a tile would have
// more threads than work. A block's columns of A are in shared memory, and numbers of B are read as they
// are needed. k is at most CHUNK. The order of a sum of products is that of ColumnLane.
BODY gemm_tn_narrow_of(const Block &block, OPERAND(const float, a), OPERAND(const float, b), OPERAND(float, c),
                       OPERAND(const float, aux), int m, int n, int k, int epilogue, float factor) {
  static_assert(NARROW_ROWS == COLUMN_PARTS, "a lane stores one element");
  const ColumnLane lane(block);
  const int row = (int)block.y() * NARROW_ROWS, column = lane.column < n ? lane.column : n - 1;
  auto &x = shared_of<NarrowMemory>(block).a;
  const float *from = in_register(AGENT(block, a)), *y = in_register(AGENT(block, b) + column), *w = AGENT(block, aux);
  const int own = row + lane.part < m ? row + lane.part : m - 1; // the row of the lane's element
  const float added = epilogue == ADD_SCALED ? factor * w[(u32)own * (u32)n + column] : 0.0f;
  const int r = block.thread() % NARROW_ROWS, at = row + r < m ? row + r : m - 1;
  float s[NARROW_ROWS] = {};
#pragma unroll 1
  for (int begin = 0; begin < k; begin += COLUMN_PARTS * COLUMN_AHEAD) {
    const int q = begin + lane.part;
    float v[COLUMN_AHEAD];
    lane.load(v, y, q, k, n);
    if (begin == 0) {
      block.sync();
#pragma unroll 8
      for (int f = block.thread() / NARROW_ROWS; f < CHUNK; f += COLUMN_THREADS / NARROW_ROWS)
        x[f][r] = f < k ? from[(u32)f * (u32)m + at] : 0.0f;
      block.sync();
    }
#pragma unroll
    for (int e = 0; e < COLUMN_AHEAD; e++) {
      const Four low = load4(&x[q + e * COLUMN_PARTS][0]), high = load4(&x[q + e * COLUMN_PARTS][4]);
#pragma unroll
      for (int r = 0; r < NARROW_ROWS; r++) s[r] = fmaf(r < 4 ? low.v[r % 4] : high.v[r % 4], v[e], s[r]);
    }
  }
  float mine = 0.0f;
#pragma unroll
  for (int r = 0; r < NARROW_ROWS; r++) {
    const float sum = lane.add_parts(s[r]);
    if (lane.part == r) mine = sum;
  }
  if (row + lane.part < m && lane.column < n)
    AGENT(block, c)[(u32)own * (u32)n + column] = epilogue == ADD_SCALED ? mine + added : mine;
}

// WideNT and WideTN are the products of the first layer of a small network, where the numbers of a
// batch are bytes. A tile of 64×112 multiplies as often as it loads from shared memory permits, and
// fills the multiprocessors of an H100 once for 10 agents with batches of 256 and 100 neurons. One
// warp on a scheduler issues a multiply-add every 1.5 cycles (84 cycles for 56 on an H200), so that
// WideNT has two, with 28 elements per thread. Beside WideTN, with one, other calls run.
typedef ExactAlong<Strided<16, 4>, Strided<16, 7>, WIDE_BK, 1> WideNT;
typedef Exact<Side<16, 7>, Side<8, 8>, WIDE_BK, 1> WideTN;

// store_fours stores the elements of C, plus factor·w if `adds`, four at a time. All of w is in
// flight at once.
template <class Core>
__device__ inline void store_fours(const Core &core, float *c, bool adds, const float *w, float factor,
                                   const Place &at, int m, int n) {
  constexpr int rows = Core::Rows::each, fours = Core::Columns::each / 4;
  static_assert(Core::Columns::each % 4 == 0, "a thread has whole fours of a row");
  Four v[rows][fours] = {};
  if (adds)
#pragma unroll
    for (int i = 0; i < rows; i++)
#pragma unroll
      for (int f = 0; f < fours; f++) {
        const int y = at.row + core.row(i), x = at.column + core.column(4 * f);
        v[i][f] = y < m && x < n ? load4(w + (i64)y * n + x) : Four{};
      }
#pragma unroll
  for (int i = 0; i < rows; i++)
#pragma unroll
    for (int f = 0; f < fours; f++) {
      const int y = at.row + core.row(i), x = at.column + core.column(4 * f);
      Four out;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const float s = core.s[i][4 * f + j];
        out.v[j] = adds ? s + factor * v[i][f].v[j] : s;
      }
      if (y < m && x < n) store4(c + (i64)y * n + x, out);
    }
}
template <class Core>
__device__ inline void store_each(const Core &core, float *c, bool adds, const float *w, float factor,
                                  const Place &at, int m, int n) {
#pragma unroll
  for (int i = 0; i < Core::Rows::each; i++)
#pragma unroll
    for (int j = 0; j < Core::Columns::each; j++) {
      const int y = at.row + core.row(i), x = at.column + core.column(j);
      const i64 e = (i64)y * n + x;
      if (y < m && x < n) c[e] = adds ? core.s[i][j] + factor * w[e] : core.s[i][j];
    }
}

// gemm_nt_bytes_parts_of computes the summands of an m×n product with a byte matrix A, one for each
// of its chunks, which lie along x: summand p of agent z is at part + (z·parts + p)·m·n.
BODY gemm_nt_bytes_parts_of(const Block &block, const u8 *bytes, const int *rows, float scale, float shift,
                            OPERAND(const float, b), float *part, int parts, int m, int n, int k) {
  WideNT core(block.thread());
  const int tiles = (n + WideNT::columns - 1) / WideNT::columns, p = block.x() / tiles;
  const Place at = {(int)block.y() * WideNT::rows, (int)(block.x() % tiles) * WideNT::columns};
  multiply<true, true>(block, core, ByteMatrix{bytes, rows + (i64)block.z() * m, k, scale, shift},
                       Matrix{AGENT(block, b), k}, at, m, n, k, chunk_of(p, parts, k));
  store_each(core, part + ((i64)block.z() * parts + p) * m * n, false, (const float *)0, 0.0f, at, m, n);
}

// gemm_tn_bytes_wide_of is gemm_tn_bytes_of for at most CHUNK products, with no epilogue or
// ADD_SCALED.
template <class Block>
__device__ inline void gemm_tn_bytes_wide_of(const Block &block, OPERAND(const float, a), const u8 *bytes,
                                             const int *rows, float scale, float shift, OPERAND(float, c),
                                             OPERAND(const float, aux), int m, int n, int k, int epilogue,
                                             float factor) {
  WideTN core(block.thread());
  const Place at = {(int)block.y() * WideTN::rows, (int)block.x() * WideTN::columns};
  multiply<false, false>(block, core, Matrix{AGENT(block, a), m},
                         ByteMatrix{bytes, rows + (i64)block.z() * k, n, scale, shift}, at, m, n, k, Span{0, k});
  const bool adds = epilogue == ADD_SCALED;
  const float *w = AGENT(block, aux);
  float *to = AGENT(block, c);
  if (n % 4 == 0 && aligned16(address(to) | address(w)))
    store_fours(core, to, adds, w, factor, at, m, n);
  else
    store_each(core, to, adds, w, factor, at, m, n);
}
