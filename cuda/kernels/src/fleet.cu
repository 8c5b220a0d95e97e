// What stands beside the matrix products where several agents' small networks run in one launch, with the CPU's bits.
#include "agent.cuh"

#define DOT_BLOCK 4096

// square_blocks: part[z·blocks + b] is the sum of squares of block b of x, added as dot_blocks of vector.cu adds.
KERNEL(128) square_blocks(double *part, OPERAND(const float, x), i64 n) {
  const float *v = AGENT(x);
  const i64 block = thread_index() / WARP, blocks = (n + DOT_BLOCK - 1) / DOT_BLOCK;
  const i64 begin = block * DOT_BLOCK, end = begin + DOT_BLOCK < n ? begin + DOT_BLOCK : n;
  const int lane = threadIdx.x % WARP;
  if (begin >= n) return;
  double s = 0.0;
#pragma unroll 8
  for (i64 i = begin + lane; i < end; i += WARP) s = s + (double)v[i] * (double)v[i];
#pragma unroll
  for (int half = WARP / 2; half > 0; half /= 2) s = s + __shfl_down_sync(ALL_LANES, s, half);
  if (lane == 0) part[blockIdx.z * blocks + block] = s;
}

// add_scaled: y = a + c·b, the product rounded first; y may be a or b.
KERNEL(256) add_scaled(OPERAND(float, y), OPERAND(const float, a), OPERAND(const float, b), float c, i64 n) {
  const i64 i = thread_index();
  if (i < n) AGENT(y)[i] = AGENT(a)[i] + c * AGENT(b)[i];
}

// update_each is fspda_update of vector.cu for every agent: u = mu·u + g, x = x + (-alpha)·u + (-eta)·lambda. Without a list of u, u is g.
KERNEL(256) update_each(float *const *x_list, const float *const *lambda_list, const float *const *g_list, float *const *u_list, float alpha,
                        float eta, float mu, i64 n) {
  const i64 i = thread_index();
  if (i >= n) return;
  float *x = x_list[blockIdx.z];
  float direction = g_list[blockIdx.z][i];
  if (u_list) {
    float *u = u_list[blockIdx.z];
    direction = mu * u[i] + direction;
    u[i] = direction;
  }
  x[i] = (x[i] + (-alpha) * direction) + (-eta) * lambda_list[blockIdx.z][i];
}

// collect: out[z·length + i] = arena[z·apart + i].
KERNEL(256) collect(float *out, const float *arena, i64 apart, int length, int agents) {
  const i64 i = thread_index();
  if (i < (i64)agents * length) out[i] = arena[i / length * apart + i % length];
}
