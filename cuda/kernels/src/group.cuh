// Bodies of group.cu.
#pragma once
#include "agent.cuh"
#include "vector.cuh"

// square_blocks: part[z·blocks + b] is the sum of squares of block b of x, in the summation order
// of dot_blocks in vector.cuh.
BODY square_blocks_of(const Block &block, double *part, OPERAND(const float, x), i64 n) {
  const float *v = AGENT(block, x);
  const i64 at = block.index() / WARP, blocks = (n + DOT_BLOCK - 1) / DOT_BLOCK;
  const i64 begin = at * DOT_BLOCK, end = begin + DOT_BLOCK < n ? begin + DOT_BLOCK : n;
  const int lane = block.thread() % WARP;
  if (begin >= n) return;
  double s = 0.0;
#pragma unroll 32 // as many loads are in flight
  for (i64 i = begin + lane; i < end; i += WARP) s = s + (double)v[i] * (double)v[i];
#pragma unroll
  for (int half = WARP / 2; half > 0; half /= 2) s = s + __shfl_down_sync(ALL_LANES, s, half);
  if (lane == 0) part[block.z() * blocks + at] = s;
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
  const double *part[8] = {part0, part1, part2, part3, part4, part5, part6, part7};
  const i64 parts[8] = {parts0, parts1, parts2, parts3, parts4, parts5, parts6, parts7};
  float *mine = loss + block.x() * stride;
  float sum = row_loss ? (float)(1.0 / (double)m * sum_in_order(block, row_loss + block.x() * m, m)) : *mine;
#pragma unroll
  for (int t = 0; t < 8; t++)
    if (t < terms) sum = sum + (float)(scale * sum_in_order(block, part[t] + block.x() * parts[t], parts[t]));
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
  const i64 i = block.index();
  if (i < (i64)agents * length) out[i] = arena[i / length * stride + i % length];
}
