// The kernels besides matrix products that compute the gradients of several agents' small networks
// in one launch, with the CPU's bits.
#include "group.cuh"

KERNEL(128) square_blocks(double *part, OPERAND(const float, x), i64 n) {
  square_blocks_of(GridBlock(), part, PASS(x), n);
}

KERNEL(64) add_decay(float *loss, i64 stride, double scale, int terms, DECAY_TERMS) {
  add_decay_of(GridBlock(), loss, stride, scale, terms, part0, parts0, part1, parts1, part2, parts2, part3, parts3,
               part4, parts4, part5, parts5, part6, parts6, part7, parts7);
}

KERNEL(256) add_scaled(OPERAND(float, y), OPERAND(const float, a), OPERAND(const float, b), float c, i64 n) {
  add_scaled_of(GridBlock(), PASS(y), PASS(a), PASS(b), c, n);
}

// update_each is fspda_update of vector.cu for every agent: u = mu·u + g, x = x + (-alpha)·u +
// (-eta)·lambda. If u_list is null, u is g.
KERNEL(256)
update_each(float *const *x_list, const float *const *lambda_list, const float *const *g_list, float *const *u_list,
            float alpha, float eta, float mu, i64 n) {
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

KERNEL(256) collect(float *out, const float *arena, i64 stride, int length, int agents) {
  collect_of(GridBlock(), out, arena, stride, length, agents);
}
