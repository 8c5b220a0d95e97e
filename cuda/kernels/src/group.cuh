// Bodies of group.cu.
#pragma once
#include "agent.cuh"
#include "vector.cuh"

#define SQUARE_AHEAD 32 // numbers that a lane has in flight

// square_blocks: part[z·blocks + b] is the sum of squares of block b of x, in the summation order
// of dot_blocks in vector.cuh. Numbers behind the last are read as the last, and not added.
BODY square_blocks_of(const Block &block, double *part, OPERAND(const float, x), i64 n) {
  const u32 at = (u32)(block.index() / WARP), blocks = (u32)((n + DOT_BLOCK - 1) / DOT_BLOCK);
  if (at >= blocks) return;
  const float *v = in_register(AGENT(block, x) + (i64)at * DOT_BLOCK);
  const u32 lane = block.thread() % WARP, count = at + 1 < blocks ? DOT_BLOCK : (u32)(n - (i64)at * DOT_BLOCK);
  double s = 0.0;
#pragma unroll 1
  for (u32 i = lane; i < count; i += SQUARE_AHEAD * WARP) {
    float some[SQUARE_AHEAD];
#pragma unroll
    for (u32 e = 0; e < SQUARE_AHEAD; e++) some[e] = v[min(i + e * WARP, count - 1)];
#pragma unroll
    for (u32 e = 0; e < SQUARE_AHEAD; e++) {
      const double one = (double)(i + e * WARP < count ? some[e] : 0.0f);
      s = s + one * one;
    }
  }
#pragma unroll
  for (int half = WARP / 2; half > 0; half /= 2) s = s + __shfl_down_sync(ALL_LANES, s, half);
  if (lane == 0) part[block.z() * blocks + at] = s;
}

#define DECAY_AHEAD 8 // numbers that a lane has in flight

// warp_sum returns Σ part to the first lane: each lane adds every 32nd number, and the lanes' sums are
// added in a tree.
__device__ inline double warp_sum(const double *part, u32 parts, u32 lane) {
  double s = 0.0;
#pragma unroll 1
  for (u32 i = lane; i < parts; i += DECAY_AHEAD * WARP) {
    double some[DECAY_AHEAD];
#pragma unroll
    for (u32 e = 0; e < DECAY_AHEAD; e++) some[e] = part[min(i + e * WARP, parts - 1)];
#pragma unroll
    for (u32 e = 0; e < DECAY_AHEAD; e++) s = s + (i + e * WARP < parts ? some[e] : 0.0);
  }
#pragma unroll
  for (int half = WARP / 2; half > 0; half /= 2) s = s + __shfl_down_sync(ALL_LANES, s, half);
  return s;
}

#define DECAY_TERMS                                                                                                    \
  const double *part0, i64 parts0, const double *part1, i64 parts1, const double *part2, i64 parts2,                   \
      const double *part3, i64 parts3, const double *part4, i64 parts4, const double *part5, i64 parts5,               \
      const double *part6, i64 parts6, const double *part7, i64 parts7

// add_decay: loss = (..((first + p₀) + p₁) ..) for agent x of the blocks, whose loss has the offset
// x·stride, with pₜ = scale·Σ partₜ, rounded, of the agent's partsₜ numbers. terms is the number of
// terms, at most 8. first is the mean of the agent's m row losses, rounded, or the loss if row_loss
// is null.
BODY add_decay_of(const Block &block, float *loss, i64 stride, const double *row_loss, i64 m, double scale, int terms,
                  DECAY_TERMS) {
  const u32 lane = block.thread() % WARP;
  float *mine = loss + block.x() * stride;
  float sum = row_loss ? 0.0f : *mine;
#pragma unroll 1 // less code than nine sums
  for (int t = row_loss ? -1 : 0; t < terms; t++) {
    const double *part = t < 0 ? row_loss : part0;
    i64 parts = t < 0 ? m : parts0;
#define PICK_TERM(i) if (t == i) part = part##i, parts = parts##i;
    PICK_TERM(1) PICK_TERM(2) PICK_TERM(3) PICK_TERM(4) PICK_TERM(5) PICK_TERM(6) PICK_TERM(7)
#undef PICK_TERM
    const double all = warp_sum(in_register(part + block.x() * parts), (u32)parts, lane);
    sum = t < 0 ? (float)(1.0 / (double)m * all) : sum + (float)(scale * all);
  }
  if (block.thread() == 0) *mine = sum;
}

// add_scaled: y = a + c·b, the product rounded first. y may be a or b.
BODY add_scaled_of(const Block &block, OPERAND(float, y), OPERAND(const float, a), OPERAND(const float, b), float c,
                   i64 n) {
  const i64 i = block.index();
  if (i < n) AGENT(block, y)[i] = AGENT(block, a)[i] + c * AGENT(block, b)[i];
}

// collect: out[z·length + i] = arena[z·stride + i].
BODY collect_of(const Block &block, float *out, const float *arena, i64 stride, int length, int agents) {
  const u32 i = (u32)block.index(), agent = i / (u32)length;
  if (agent < (u32)agents) out[i] = arena[agent * stride + (i - agent * (u32)length)];
}
