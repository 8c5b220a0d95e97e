// Bodies of gemm_bytes.cu: products of a byte matrix with a float32 matrix on tensor cores, with
// exact factors. A byte is a bfloat16 number, and a float32 number is the sum of three of them, so
// that three products of bfloat16 numbers, which tensor cores compute exactly, are the product of a
// byte and a float32 number. Only sums are rounded, in float32. The product with the numbers
// byte·scale + shift is scale·Σ byte·w + shift·Σ w.
//
// A float32 number below 2^-110 loses what lies below 2^-133, the smallest bfloat16 number. NaN and
// infinities make NaN.
//
// A block computes 64 rows, which belong to the byte matrix, and 104 columns. Its four warps have
// all rows of three tiles of eight columns each, so that each number is split once, and of a
// thirteenth tile 16 rows each.
#pragma once
#include "gemm.cuh"
#include "mma.cuh"

#define BYTES_THREADS 128
#define BYTES_ROWS 64
#define BYTES_COLUMNS 104
#define BYTES_STEP 16 // products of a row and a column that an instruction adds

#if TENSOR_CORES

// BytesMemory is the bytes of a block: of 64 rows and at most 384 products.
struct BytesMemory {
  __align__(16) u8 v[BYTES_ROWS * CHUNK];
};

// sixty_fourths converts two bytes, at bits 0 and 16, to a pair of bfloat16 numbers of a 64th of
// them. A bfloat16 number with the bits of a byte b is b·2^-133.
__device__ inline u32 sixty_fourths(u32 bytes) {
#ifdef FSPDA_HOST
  return pair<BFloat>((float)(bytes & 0xff) / 64, (float)(bytes >> 16) / 64);
#else
  u32 p;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(p) : "r"(bytes), "r"(0x7f007f00u), "r"(0x80008000u)); // ·2^127 - 0
  return p;
#endif
}

// four_bytes converts bytes 0 and 2 of a word, and bytes 1 and 3.
__device__ inline void four_bytes(u32 word, u32 &even, u32 &odd) {
  even = sixty_fourths(word & 0x00ff00ff);
  odd = sixty_fourths(word >> 8 & 0x00ff00ff);
}

// high_halves returns the upper halves of two words. As bfloat16 numbers they are the first eight
// bits of float32 numbers.
__device__ inline u32 high_halves(float low, float high) {
  return __float_as_uint(low) >> 16 | (__float_as_uint(high) & 0xffff0000u);
}

// rest returns v without its first eight bits. The difference is exact.
__device__ inline float rest(float v) { return v - __uint_as_float(__float_as_uint(v) & 0xffff0000u); }

// BytesWarp is what a warp computes: the sums of the products of its tiles, apart for the first
// eight bits of the numbers, which are the large products, and for the others; and the sums of the
// numbers. Tile i of rows is tile i ^ (warp & 2) of the block, and the rows of the thirteenth tile of
// columns are those of tile warp.
struct BytesWarp {
  static constexpr int tiles = 4; // tiles of columns, with the thirteenth
  float sums[tiles - 1][4][2][4] = {}, last_sums[2][4] = {}, numbers[tiles] = {};
  int warp, g, t;

  __device__ BytesWarp(u32 thread) : warp(thread / WARP), g(thread % WARP / 4), t(thread % 4) {}
  __device__ int first_column(int tile) const { return 8 * (tile < tiles - 1 ? warp * (tiles - 1) + tile : 12); }
  // half returns which half of the block's rows tiles 2·i and 2·i + 1 are.
  __device__ int half(int i) const { return i ^ warp / 2; }

  // add adds 16 products. A lane has numbers 0 to 3 of a column of each tile.
  template <class Operands> ALWAYS_INLINE void add(const Operands &o, Four (&numbers_of)[tiles], int step, int steps) {
    u32 a[4][4];
    o.bytes(a, step);
    u32 b[tiles][3][2];
#pragma unroll
    for (int j = 0; j < tiles; j++) {
      Four &v = numbers_of[j];
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (o.there(step, i)) numbers[j] = numbers[j] + v.v[i];
#pragma unroll
      for (int p = 0; p < 3; p++) {
        b[j][p][0] = high_halves(v.v[0], v.v[2]), b[j][p][1] = high_halves(v.v[1], v.v[3]);
        if (p < 2)
#pragma unroll
          for (int i = 0; i < 4; i++) v.v[i] = rest(v.v[i]);
      }
    }
    if (step + 2 < steps) o.load(numbers_of, step + 2);
    u32 last[4];
#pragma unroll
    for (int r = 0; r < 4; r++) last[r] = warp & 1 ? a[1][r] : a[0][r];
#pragma unroll
    for (int j = 0; j < tiles; j++)
#pragma unroll
      for (int p = 0; p < 3; p++)
        if (j < tiles - 1)
#pragma unroll
          for (int i = 0; i < 4; i++) mma_half<BFloat>(sums[j < tiles - 1 ? j : 0][i][p > 0], a[i], b[j][p]);
        else
          mma_half<BFloat>(last_sums[p > 0], last, b[j][p]);
  }

  // add_all adds all products. The first numbers are already loaded; the bytes are in shared memory.
  template <class Operands> ALWAYS_INLINE void add_all(const Operands &o, Four (&ahead)[2][tiles], int steps) {
#pragma unroll 1
    for (int step = 0; step < steps; step += 2) {
      add(o, ahead[0], step, steps);
      if (step + 1 < steps) add(o, ahead[1], step + 1, steps);
    }
#pragma unroll
    for (int j = 0; j < tiles; j++)
#pragma unroll
      for (int half = 1; half < 4; half *= 2) numbers[j] = numbers[j] + __shfl_xor_sync(ALL_LANES, numbers[j], half);
  }

  // number returns the sum of the numbers of column 2·t + x of a tile.
  __device__ float number(int tile, int x) const { return __shfl_sync(ALL_LANES, numbers[tile], 8 * t + 4 * x); }
  __device__ float product(int tile, int i, int r, float scale, float shifted) const {
    return fmaf(sums[tile][i][0][r] + sums[tile][i][1][r], 64.0f * scale, shifted);
  }
  __device__ float last_product(int r, float scale, float shifted) const {
    return fmaf(last_sums[0][r] + last_sums[1][r], 64.0f * scale, shifted);
  }
};

// AlongRows is the operands of A·Bᵀ, where the products lie along the rows of both. Lane t has
// products 4·t to 4·t + 3 of a step. 16 bytes of each row make a step in shared memory.
struct AlongRows {
  const u8 *memory; // the lane's first bytes
  int half[2];      // offsets
  const float *from[BytesWarp::tiles];

  __device__ AlongRows(const BytesMemory &memory, const BytesWarp &w, const float *b, int column, int n, int k) : memory(memory.v + 16 * w.g + 4 * w.t) {
#pragma unroll
    for (int i = 0; i < 2; i++) half[i] = 512 * w.half(i);
#pragma unroll
    for (int j = 0; j < BytesWarp::tiles; j++) {
      const int row = column + w.first_column(j) + w.g;
      from[j] = b + (i64)(row < n ? row : n - 1) * k + 4 * w.t;
    }
  }
  __device__ bool there(int, int) const { return true; }
  __device__ void load(Four (&to)[BytesWarp::tiles], int step) const {
#pragma unroll
    for (int j = 0; j < BytesWarp::tiles; j++) to[j] = load4(from[j] + BYTES_STEP * step);
  }
  __device__ void bytes(u32 (&a)[4][4], int step) const {
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int r = 0; r < 2; r++)
        four_bytes(*(const u32 *)(memory + half[i / 2] + 1024 * step + 256 * (i % 2) + 128 * r), a[i][r], a[i][r + 2]);
  }
};

// AlongColumns is the operands of Aᵀ·B, where the products lie along the columns of both. Lane t has
// products t, t + 4, t + 8 and t + 12 of a step. The 64 bytes of a product lie side by side in shared
// memory, with both halves exchanged for products 2 and 3 of each four, so that the lanes of a warp
// read from different banks. The rows of the product are arranged such that a lane has four side by
// side.
struct AlongColumns {
  const u8 *memory;
  int half[2];
  const float *from; // the lane's first number
  int column[BytesWarp::tiles], first, k, n;

  __device__ AlongColumns(const BytesMemory &memory, const BytesWarp &w, const float *a, int begin, int n, int k)
      : memory(memory.v + 64 * w.t + 4 * w.g), from(a + (i64)w.t * n), first(w.t), k(k), n(n) {
#pragma unroll
    for (int i = 0; i < 2; i++) half[i] = 32 * (w.half(i) ^ w.t / 2);
#pragma unroll
    for (int j = 0; j < BytesWarp::tiles; j++) {
      const int x = begin + w.first_column(j) + w.g;
      column[j] = x < n ? x : n - 1;
    }
  }
  __device__ bool there(int step, int i) const { return BYTES_STEP * step + 4 * i + first < k; }
  // load leaves numbers of products that are not there as they are. Their bytes are 0.
  __device__ void load(Four (&to)[BytesWarp::tiles], int step) const {
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (there(step, i))
#pragma unroll
        for (int j = 0; j < BytesWarp::tiles; j++) to[j].v[i] = from[(BYTES_STEP * step + 4 * i) * n + column[j]];
  }
  __device__ void bytes(u32 (&a)[4][4], int step) const {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      u32 word[4];
#pragma unroll
      for (int i = 0; i < 4; i++) word[i] = *(const u32 *)(memory + half[h] + 1024 * step + 256 * i);
#pragma unroll
      for (int q = 0; q < 2; q++) {
        four_bytes((word[q] & 0xffff) | word[q + 2] << 16, a[2 * h][2 * q], a[2 * h][2 * q + 1]);
        four_bytes(word[q] >> 16 | (word[q + 2] & 0xffff0000u), a[2 * h + 1][2 * q], a[2 * h + 1][2 * q + 1]);
      }
    }
  }
};

#endif

// gemm_nt_bytes_mma_of is gemm_nt_bytes_parts_of on tensor cores, with parts of whole steps. k is a
// multiple of 16, and bytes and B are aligned to 16 bytes.
BODY gemm_nt_bytes_mma_of(const Block &block, const u8 *bytes, const int *rows, float scale, float shift,
                          OPERAND(const float, b), float *part, int parts, int m, int n, int k) {
#if TENSOR_CORES
  auto &memory = shared_of<BytesMemory>(block);
  BytesWarp w(block.thread());
  const int across = (n + BYTES_COLUMNS - 1) / BYTES_COLUMNS, p = block.x() / across;
  const Place at = {(int)block.y() * BYTES_ROWS, (int)(block.x() % across) * BYTES_COLUMNS};
  const Span span = chunk_of(p, parts, k / BYTES_STEP);
  const int steps = span.to - span.from, lane = block.thread() % WARP;
  int stored[2]; // rows
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int y = at.row + 32 * h + 8 * w.warp + lane / 4;
    stored[h] = rows[(i64)block.z() * m + (y < m ? y : m - 1)];
  }
  const AlongRows o(memory, w, AGENT(block, b) + BYTES_STEP * span.from, at.column, n, k);
  Four ahead[2][BytesWarp::tiles] = {};
  o.load(ahead[0], 0);
  if (steps > 1) o.load(ahead[1], 1);
  block.sync();
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const u8 *from = bytes + (i64)stored[h] * k + BYTES_STEP * span.from;
#pragma unroll 1
    for (int s = lane % 4; s < steps; s += 4)
      copy_async(memory.v + 16 * (BYTES_ROWS * s + 32 * h + 8 * w.warp + lane / 4), from + BYTES_STEP * s, true);
  }
  end_copies();
  wait_copies<0>();
  block.sync();
  w.add_all(o, ahead, steps);
  float *c = part + ((i64)block.z() * parts + p) * m * n;
#pragma unroll
  for (int j = 0; j < BytesWarp::tiles; j++) {
    const float shifted[2] = {shift * w.number(j, 0), shift * w.number(j, 1)};
    const int x = at.column + w.first_column(j) + 2 * w.t;
#pragma unroll
    for (int i = 0; i < (j < BytesWarp::tiles - 1 ? 4 : 1); i++)
#pragma unroll
      for (int r = 0; r < 4; r += 2) {
        const bool last = j == BytesWarp::tiles - 1;
        const int y = at.row + (last ? 16 * w.warp : 32 * w.half(i / 2) + 16 * (i % 2)) + w.g + 4 * r;
        float v[2];
#pragma unroll
        for (int e = 0; e < 2; e++)
          v[e] = last ? w.last_product(r + e, scale, shifted[e]) : w.product(last ? 0 : j, i, r + e, scale, shifted[e]);
        float *to = c + (i64)y * n + x;
        if (y < m && x + 1 < n && n % 2 == 0)
          *(float2 *)to = float2{v[0], v[1]};
        else if (y < m && x < n) {
          to[0] = v[0];
          if (x + 1 < n) to[1] = v[1];
        }
      }
  }
#endif
}

// gemm_tn_bytes_mma_of is gemm_tn_bytes_of on tensor cores, for at most CHUNK products, with no
// epilogue or ADD_SCALED. n is a multiple of 16, and bytes, C and aux are aligned to 16 bytes.
BODY gemm_tn_bytes_mma_of(const Block &block, OPERAND(const float, a), const u8 *bytes, const int *rows, float scale,
                          float shift, OPERAND(float, c), OPERAND(const float, aux), int m, int n, int k, int epilogue,
                          float factor) {
#if TENSOR_CORES
  auto &memory = shared_of<BytesMemory>(block);
  BytesWarp w(block.thread());
  const Place at = {(int)block.y() * BYTES_COLUMNS, (int)block.x() * BYTES_ROWS}; // row and column of C
  const int steps = (k + BYTES_STEP - 1) / BYTES_STEP, lane = block.thread() % WARP;
  const AlongColumns o(memory, w, AGENT(block, a), at.row, m, k);
  Four ahead[2][BytesWarp::tiles] = {};
  o.load(ahead[0], 0);
  o.load(ahead[1], 1);
  const int x = at.column + 16 * (lane % 4), mine = 8 * w.warp + lane / 4;
  const u8 *from = bytes + (x < n ? x : 0);
  block.sync();
#pragma unroll 1
  for (int q = mine; q < BYTES_STEP * steps; q += 256) {
    int stored[8];
#pragma unroll
    for (int i = 0; i < 8; i++) stored[i] = rows[(i64)block.z() * k + (q + 32 * i < k ? q + 32 * i : k - 1)];
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const int at = q + 32 * i;
      if (at < BYTES_STEP * steps)
        copy_async(memory.v + 64 * at + (16 * (lane % 4) ^ (at & 2) * 16), from + (i64)stored[i] * n, at < k && x < n);
    }
  }
  end_copies();
  wait_copies<0>();
  block.sync();
  w.add_all(o, ahead, steps);
  const float *aux_of = AGENT(block, aux);
  float *to = AGENT(block, c);
  const bool adds = epilogue == ADD_SCALED;
  Four v[BytesWarp::tiles - 1][2][2] = {};
  float2 u[2] = {};
  // at_of returns the place of four numbers of a column of tile j, or of the two of the last tile.
  const auto at_of = [&](int j, int e, int h) {
    const int column = j < BytesWarp::tiles - 1 ? 32 * w.half(h) : 32 * (w.warp / 2) + 2 * (w.warp % 2);
    return (i64)(at.row + w.first_column(j) + 2 * w.t + e) * n + at.column + column + 4 * w.g;
  };
  const auto there = [&](int j, int e, int h) {
    return at.row + w.first_column(j) + 2 * w.t + e < m &&
           at.column + 32 * (j < BytesWarp::tiles - 1 ? w.half(h) : w.warp / 2) + 4 * w.g < n;
  };
  if (adds) {
#pragma unroll
    for (int j = 0; j < BytesWarp::tiles; j++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        if (j == BytesWarp::tiles - 1) {
          if (there(j, e, 0)) u[e] = *(const float2 *)(aux_of + at_of(j, e, 0));
        } else
#pragma unroll
          for (int h = 0; h < 2; h++)
            if (there(j, e, h)) v[j][e][h] = load4(aux_of + at_of(j, e, h));
  }
#pragma unroll
  for (int j = 0; j < BytesWarp::tiles; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const float shifted = shift * w.number(j, e);
      if (j == BytesWarp::tiles - 1) {
        const float2 sum = {w.last_product(e, scale, shifted), w.last_product(e + 2, scale, shifted)};
        if (there(j, e, 0))
          *(float2 *)(to + at_of(j, e, 0)) = adds ? float2{fmaf(factor, u[e].x, sum.x), fmaf(factor, u[e].y, sum.y)} : sum;
      } else
#pragma unroll
        for (int h = 0; h < 2; h++) {
          Four out;
#pragma unroll
          for (int i = 0; i < 4; i++) {
            const float sum = w.product(j, 2 * h + i / 2, e + i % 2 * 2, scale, shifted);
            out.v[i] = adds ? fmaf(factor, v[j][e][h].v[i], sum) : sum;
          }
          if (there(j, e, h)) store4(to + at_of(j, e, h), out);
        }
    }
#endif
}
