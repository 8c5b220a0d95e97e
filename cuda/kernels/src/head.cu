// The rows of a small network's last layers, and the gradients of its biases, for several agents in
// one launch. See head.cuh.
#include "head.cuh"

KERNEL_OCCUPANCY(HEAD_THREADS, 1)
head(const float *part, int parts, OPERAND(const float, aux), int epilogue, OPERAND(float, h), OPERAND(const float, w),
     OPERAND(const float, bias), const float *labels, u32 *bad, double *row_loss, OPERAND(float, dz),
     OPERAND(float, dh), int back, int m, int rows, int width, int classes, double s) {
  head_of(GridBlock(), part, parts, PASS(aux), epilogue, PASS(h), PASS(w), PASS(bias), labels, bad, row_loss, PASS(dz),
          PASS(dh), back, m, rows, width, classes, s);
}

KERNEL_OCCUPANCY(COLUMN_THREADS, 6)
bias_gradient(OPERAND(float, db), OPERAND(const float, dy), OPERAND(const float, b), float factor, int m, int n) {
  bias_gradient_of(GridBlock(), PASS(db), PASS(dy), PASS(b), factor, m, n);
}
