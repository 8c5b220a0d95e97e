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
#define SPLIT_INTO 3  // bfloat16 numbers whose sum is a float32 number

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
  odd = sixty_fourths(__byte_perm(word, 0, 0x4341));
}

// high_halves returns the upper halves of two words. As bfloat16 numbers they are the first eight
// bits of float32 numbers.
__device__ inline u32 high_halves(float low, float high) {
  return __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x7632);
}

// computed keeps what was computed from being computed later, or only where a condition holds.
__device__ inline float computed(float v) {
#ifndef FSPDA_HOST
  asm volatile("" : "+f"(v));
#endif
  return v;
}

// rest returns v without its first eight bits. The difference is exact.
__device__ inline float rest(float v) { return v - __uint_as_float(__float_as_uint(v) & 0xffff0000u); }

// BytesWarp is what a warp computes: the sums of the products of its tiles, and the sums of the
// numbers. Tile i of rows is tile i ^ (warp & 2) of the block, and the rows of the thirteenth tile of
// columns are those of tile warp. A lane has four numbers of a column of each tile in a step.
struct BytesWarp {
  static constexpr int tiles = 4;        // of columns, with the thirteenth
  typedef Four Numbers[tiles];           // of a step
  typedef u32 Rows[4][4];                // fragments of all tiles of rows
  typedef u32 Columns[2][SPLIT_INTO][2]; // fragments of two tiles of columns
  float sums[tiles - 1][4][4] = {}, last_sums[4] = {}, numbers[tiles] = {};
  int warp, g, t;

  __device__ BytesWarp(u32 thread) : warp(thread / WARP), g(thread % WARP / 4), t(thread % 4) {}
  __device__ int first_column(int tile) const { return 8 * (tile < tiles - 1 ? warp * (tiles - 1) + tile : 12); }
  // half returns which half of the block's rows tiles 2·i and 2·i + 1 are.
  __device__ int half(int i) const { return i ^ warp / 2; }

  // split splits off bits of the four numbers of a tile, the p-th eight. First it adds the numbers to
  // the tile's sum, times `count`.
  __device__ void split(u32 (&to)[2], Four &four, int tile, int p, float count) {
    float(&v)[4] = four.v;
    if (p == 0)
#pragma unroll
      for (int i = 0; i < 4; i++) numbers[tile] = fmaf(count, v[i], numbers[tile]);
    to[0] = high_halves(v[0], v[2]), to[1] = high_halves(v[1], v[3]);
    if (p + 1 < SPLIT_INTO)
#pragma unroll
      for (int i = 0; i < 4; i++) v[i] = rest(v[i]);
  }

  // add_all adds all products, once the bytes are in shared memory. In a step it uses fragments of two tiles
  // of columns, and makes those of the other two, then the other way round, with the rows' of the next step.
  template <class Operands> ALWAYS_INLINE void add_all(const Operands &o, Numbers &all, int steps) {
    Columns first;
    Rows rows;
    typename Operands::Words words;
    o.fetch(words, 0);
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int p = 0; p < SPLIT_INTO; p++) split(first[j][p], all[j], j, p, 1.0f);
    o.load(all, 0, 1, steps);
#pragma unroll
    for (int i = 0; i < 4; i++) o.convert(rows, words, i);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
      const bool more = step + 1 < steps;
      o.fetch(words, more ? step + 1 : step);
      Columns second;
#pragma unroll
      for (int p = 0; p < SPLIT_INTO; p++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
#pragma unroll
          for (int i = 0; i < 4; i++) mma_half<BFloat>(sums[j][i], rows[i], first[j][p]);
          split(second[j][p], all[2 + j], 2 + j, p, 1.0f);
        }
      __syncwarp();
      o.load(all, 2, step + 1, steps);
      u32 last[4];
#pragma unroll
      for (int r = 0; r < 4; r++) last[r] = warp & 1 ? rows[1][r] : rows[0][r];
#pragma unroll
      for (int p = 0; p < SPLIT_INTO; p++) {
#pragma unroll
        for (int i = 0; i < 4; i++) mma_half<BFloat>(sums[2][i], rows[i], second[0][p]);
        mma_half<BFloat>(last_sums, last, second[1][p]);
#pragma unroll
        for (int j = 0; j < 2; j++) split(first[j][p], all[j], j, p, more ? 1.0f : 0.0f);
      }
      __syncwarp();
      o.load(all, 0, step + 2, steps);
#pragma unroll
      for (int i = 0; i < 4; i++) o.convert(rows, words, i);
    }
#pragma unroll
    for (int j = 0; j < tiles; j++) {
      numbers[j] = o.corrected(numbers[j], j);
#pragma unroll
      for (int lanes = 1; lanes < 4; lanes *= 2)
        numbers[j] = numbers[j] + __shfl_xor_sync(ALL_LANES, numbers[j], lanes);
    }
  }

  // number returns the sum of the numbers of column 2·t + x of a tile.
  __device__ float number(int tile, int x) const { return __shfl_sync(ALL_LANES, numbers[tile], 8 * t + 4 * x); }
  // product returns scale times the sum at a place of tiles of columns and rows, plus `shifted`.
  __device__ float product(int tile, int i, int r, float scale, float shifted) const {
    const bool last = tile == tiles - 1;
    const int j = last ? 0 : tile;
    return fmaf(last ? last_sums[r] : sums[j][i][r], 64.0f * scale, shifted);
  }
};

// AlongRows is the operands of A·Bᵀ, where the products lie along the rows of both. Lane t has
// products 4·t to 4·t + 3 of a step. 16 bytes of each row make a step in shared memory.
struct AlongRows {
  typedef u32 Words[4][2]; // of a step: rows g and g + 8 of each tile
  const u8 *memory;        // the lane's first bytes
  int half[2];             // offsets
  const float *from[BytesWarp::tiles];

  __device__ AlongRows(const BytesMemory &memory, const BytesWarp &w, const float *b, int column, int n, int k)
      : memory(memory.v + 16 * w.g + 4 * w.t) {
#pragma unroll
    for (int i = 0; i < 2; i++) half[i] = 512 * w.half(i);
#pragma unroll
    for (int j = 0; j < BytesWarp::tiles; j++) {
      const int row = column + w.first_column(j) + w.g;
      from[j] = in_register(b + (u32)((row < n ? row : n - 1) * k + 4 * w.t));
    }
  }
  // load loads the numbers of tiles j and j + 1 of a step, if it is there.
  __device__ void load(BytesWarp::Numbers &to, int j, int step, int steps) const {
#pragma unroll
    for (int l = j; l < j + 2; l++)
      if (step < steps) to[l] = load4(from[l] + (u32)(BYTES_STEP * step));
  }
  __device__ void fetch(Words &w, int step) const {
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int r = 0; r < 2; r++)
        w[i][r] = *(const u32 *)(memory + half[i / 2] + 1024 * step + 256 * (i % 2) + 128 * r);
  }
  // convert makes the fragment of a tile of rows.
  __device__ void convert(BytesWarp::Rows &rows, const Words &w, int i) const {
#pragma unroll
    for (int r = 0; r < 2; r++) four_bytes(w[i][r], rows[i][r], rows[i][r + 2]);
  }
  __device__ float corrected(float sum, int) const { return sum; }
};

// AlongColumns is the operands of Aᵀ·B, where the products lie along the columns of both. Lane t has
// products t, t + 4, t + 8 and t + 12 of a step. The 64 bytes of a product lie side by side in shared
// memory, with both halves exchanged for products 2 and 3 of each four, so that the lanes of a warp
// read from different banks. The rows of the product are arranged such that a lane has four side by
// side. Beyond the last product the numbers are those of the last, and bytes are 0.
struct AlongColumns {
  typedef u32 Words[2][4]; // of a step: four products in each half of the rows
  const u8 *memory;        // the lane's first bytes
  int half[2];             // offsets
  const float *from[BytesWarp::tiles];
  u32 first, k, n; // the lane's first product

  __device__ AlongColumns(const BytesMemory &memory, const BytesWarp &w, const float *a, int begin, int n, int k)
      : memory(memory.v + 64 * w.t + 4 * w.g), first(w.t), k(k), n(n) {
#pragma unroll
    for (int i = 0; i < 2; i++) half[i] = 32 * (w.half(i) ^ w.t / 2);
#pragma unroll
    for (int j = 0; j < BytesWarp::tiles; j++) {
      const int x = begin + w.first_column(j) + w.g;
      from[j] = in_register(a + (x < n ? x : n - 1));
    }
  }
  __device__ void load(BytesWarp::Numbers &to, int j, int step, int) const {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const u32 q = BYTES_STEP * step + 4 * i + first, at = min(q, k - 1) * n;
#pragma unroll
      for (int l = j; l < j + 2; l++) to[l].v[i] = from[l][at];
    }
  }
  __device__ void fetch(Words &w, int step) const {
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int i = 0; i < 4; i++) w[h][i] = *(const u32 *)(memory + half[h] + 1024 * step + 256 * i);
  }
  __device__ void convert(BytesWarp::Rows &rows, const Words &w, int i) const {
    const u32(&v)[4] = w[i / 2];
#pragma unroll
    for (int q = 0; q < 2; q++) {
      const u32 both = __byte_perm(v[q], v[q + 2], i % 2 ? 0x7632 : 0x5410);
      four_bytes(both, rows[i][2 * q], rows[i][2 * q + 1]);
    }
  }
  // corrected subtracts what was added beyond the last product.
  __device__ float corrected(float sum, int j) const {
    const int beyond = (int)(first + BYTES_STEP - 1 - (k - 1) % BYTES_STEP) / 4; // of the lane's four
    return k % BYTES_STEP ? fmaf(-(float)beyond, from[j][(k - 1) * n], sum) : sum;
  }
};

#endif

// gemm_nt_bytes_mma_of is gemm_nt_bytes_parts_of on tensor cores, with parts of whole steps. k is a
// multiple of 16, n is even, and bytes and B are aligned to 16 bytes. The parts of the first columns
// come first along x.
BODY gemm_nt_bytes_mma_of(const Block &block, const u8 *bytes, const int *rows, float scale, float shift,
                          OPERAND(const float, b), float *part, int parts, int m, int n, int k) {
#if TENSOR_CORES
  auto &memory = shared_of<BytesMemory>(block);
  BytesWarp w(block.thread());
  int p = (int)block.x();
  Place at = {(int)block.y() * BYTES_ROWS, 0};
#pragma unroll 1
  for (; p >= parts; p -= parts) at.column += BYTES_COLUMNS; // a division is long, and columns are few
  const Span span = chunk_of((u32)p, (u32)parts, (u32)k / BYTES_STEP);
  const int steps = span.to - span.from, lane = block.thread() % WARP, mine = 8 * w.warp + lane / 4;
  const u32 *row = (const u32 *)rows + (i64)block.z() * m;
  u32 stored[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int y = at.row + 32 * h + mine;
    stored[h] = row[(u32)(y < m ? y : m - 1)];
  }
  const AlongRows o(memory, w, AGENT(block, b) + BYTES_STEP * span.from, at.column, n, k);
  block.sync();
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const u8 *from = bytes + ((u64)stored[h] * (u32)k + BYTES_STEP * (span.from + lane % 4));
    u8 *to = memory.v + 16 * (BYTES_ROWS * (lane % 4) + 32 * h + mine);
#pragma unroll 1
    for (int s = lane % 4; s < steps; s += 4, to += 64 * BYTES_ROWS, from += 4 * BYTES_STEP) copy_async(to, from, true);
  }
  end_copies();
  BytesWarp::Numbers ahead;
  o.load(ahead, 0, 0, steps);
  o.load(ahead, 2, 0, steps);
  __syncwarp(); // the loads begin before the wait
  wait_copies<0>();
  block.sync();
  w.add_all(o, ahead, steps);
  float *c = in_register(part + (i64)(block.z() * parts + p) * (m * n));
#pragma unroll
  for (int j = 0; j < BytesWarp::tiles; j++) {
    const bool last = j == BytesWarp::tiles - 1;
    const float shifted[2] = {shift * w.number(j, 0), shift * w.number(j, 1)};
    const int x = at.column + w.first_column(j) + 2 * w.t;
#pragma unroll
    for (int i = 0; i < (last ? 1 : 4); i++)
#pragma unroll
      for (int r = 0; r < 4; r += 2) {
        const int y = at.row + (last ? 16 * w.warp : 32 * w.half(i / 2) + 16 * (i % 2)) + w.g + 4 * r;
        float2 *to = (float2 *)in_register(c + (u32)(y * n + x));
        const float2 two = {computed(w.product(j, i, r, scale, shifted[0])),
                            computed(w.product(j, i, r + 1, scale, shifted[1]))};
        if (y < m & x < n) *to = two;
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
  const float *with = in_register(AGENT(block, aux));
  float *to = in_register(AGENT(block, c));
  const int x = at.column + 16 * (lane % 4), mine = 8 * w.warp + lane / 4;
  const u8 *from = in_register(bytes + (x < n ? x : 0));
  const u32 *row = in_register((const u32 *)rows + (i64)block.z() * k);
  block.sync();
#pragma unroll 1
  for (int first = mine; first < BYTES_STEP * steps; first += 256) {
    u32 stored[8]; // rows
#pragma unroll
    for (int i = 0; i < 8; i++) stored[i] = row[(u32)(first + 32 * i < k ? first + 32 * i : k - 1)];
    u8 *to = memory.v + 64 * first + (16 * (lane % 4) ^ (first & 2) * 16);
#pragma unroll
    for (int i = 0; i < 8; i++) // there is memory for 384 products
      if (i < 4 || first + 32 * i < CHUNK)
        copy_async(to + 2048 * i, from + (u64)stored[i] * (u32)n, first + 32 * i < k && x < n);
  }
  end_copies();
  BytesWarp::Numbers ahead;
  o.load(ahead, 0, 0, steps);
  o.load(ahead, 2, 0, steps);
  __syncwarp(); // the loads begin before the wait
  wait_copies<0>();
  block.sync();
  w.add_all(o, ahead, steps);
  // A lane has four numbers in each half of two rows of a tile, and two of the last tile.
  constexpr int tiles = BytesWarp::tiles;
  Four v[tiles][2][2] = {};
  const auto place = [&](int j, int e, int h) {
    const int column = j == tiles - 1 ? 32 * (w.warp / 2) + 2 * (w.warp % 2) : 32 * w.half(h);
    return (u32)((at.row + w.first_column(j) + 2 * w.t + e) * n + at.column + column + 4 * w.g);
  };
  const auto there = [&](int j, int e, int h) {
    return at.row + w.first_column(j) + 2 * w.t + e < m &&
           at.column + 32 * (j == tiles - 1 ? w.warp / 2 : w.half(h)) + 4 * w.g < n;
  };
  if (epilogue == ADD_SCALED)
#pragma unroll
    for (int j = 0; j < tiles; j++)
#pragma unroll
      for (int e = 0; e < 2; e++)
#pragma unroll
        for (int h = 0; h < (j == tiles - 1 ? 1 : 2); h++) {
          if (!there(j, e, h)) continue;
          if (j < tiles - 1) {
            v[j][e][h] = load4(with + place(j, e, h));
          } else {
            const float2 two = *(const float2 *)(with + place(j, e, h));
            v[j][e][h].v[0] = two.x, v[j][e][h].v[1] = two.y;
          }
        }
  __syncwarp(); // all loads begin before the first store
  const float times = epilogue == ADD_SCALED ? factor : 0.0f;
#pragma unroll
  for (int j = 0; j < tiles; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const float shifted = shift * w.number(j, e);
#pragma unroll
      for (int h = 0; h < (j == tiles - 1 ? 1 : 2); h++) {
        Four &x = v[j][e][h];
#pragma unroll
        for (int i = 0; i < (j == tiles - 1 ? 2 : 4); i++)
          x.v[i] = computed(fmaf(times, x.v[i], w.product(j, 2 * h + i / 2, e + i % 2 * 2, scale, shifted)));
        if (!there(j, e, h)) continue;
        if (j < tiles - 1)
          store4(to + place(j, e, h), x);
        else
          *(float2 *)(to + place(j, e, h)) = float2{x.v[0], x.v[1]};
      }
    }
#endif
}
