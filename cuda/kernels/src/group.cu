// The kernels besides matrix products that compute the gradients of several agents' small networks
// in one launch.
#include "group.cuh"

KERNEL(256) square_blocks(double *part, OPERAND(const float, x), i64 n) {
  square_blocks_of(GridBlock(), part, PASS(x), n);
}

KERNEL(64) add_decay(float *loss, i64 stride, const double *row_loss, i64 m, double scale, int terms, DECAY_TERMS) {
  add_decay_of(GridBlock(), loss, stride, row_loss, m, scale, terms, part0, parts0, part1, parts1, part2, parts2, part3, parts3,
               part4, parts4, part5, parts5, part6, parts6, part7, parts7);
}

KERNEL(256) add_scaled(OPERAND(float, y), OPERAND(const float, a), OPERAND(const float, b), float c, i64 n) {
  add_scaled_of(GridBlock(), PASS(y), PASS(a), PASS(b), c, n);
}

KERNEL(256) collect(float *out, const float *arena, i64 stride, int length, int agents) {
  collect_of(GridBlock(), out, arena, stride, length, agents);
}
