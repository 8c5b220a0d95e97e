// Bodies of fleet.cu.
#pragma once
#include "agent.cuh"
#include "vector.cuh"

// square_blocks: part[z·blocks + b] is the sum of squares of block b of x, added as dot_blocks of vector.cuh adds.
BODY square_blocks_of(const Block &block, double *part, OPERAND(const float, x), i64 n) {
  const float *v = AGENT(block, x);
  const i64 at = block.index() / WARP, blocks = (n + DOT_BLOCK - 1) / DOT_BLOCK;
  const i64 begin = at * DOT_BLOCK, end = begin + DOT_BLOCK < n ? begin + DOT_BLOCK : n;
  const int lane = block.thread() % WARP;
  if (begin >= n) return;
  double s = 0.0;
#pragma unroll 8
  for (i64 i = begin + lane; i < end; i += WARP) s = s + (double)v[i] * (double)v[i];
#pragma unroll
  for (int half = WARP / 2; half > 0; half /= 2) s = s + __shfl_down_sync(ALL_LANES, s, half);
  if (lane == 0) part[block.z() * blocks + at] = s;
}

// add_scaled: y = a + c·b, the product rounded first; y may be a or b.
BODY add_scaled_of(const Block &block, OPERAND(float, y), OPERAND(const float, a), OPERAND(const float, b), float c, i64 n) {
  const i64 i = block.index();
  if (i < n) AGENT(block, y)[i] = AGENT(block, a)[i] + c * AGENT(block, b)[i];
}

// collect: out[z·length + i] = arena[z·apart + i].
BODY collect_of(const Block &block, float *out, const float *arena, i64 apart, int length, int agents) {
  const i64 i = block.index();
  if (i < (i64)agents * length) out[i] = arena[i / length * apart + i % length];
}
