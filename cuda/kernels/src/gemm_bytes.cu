// Products of several agents with a byte matrix, on tensor cores. See gemm_bytes.cuh.
#include "gemm_bytes.cuh"

KERNEL_OCCUPANCY(BYTES_THREADS, 2)
gemm_nt_bytes_mma(const u8 *bytes, const int *rows, float scale, float shift, OPERAND(const float, b), float *part,
                  int parts, int m, int n, int k) {
  gemm_nt_bytes_mma_of(GridBlock(), bytes, rows, scale, shift, PASS(b), part, parts, m, n, k);
}

KERNEL_OCCUPANCY(BYTES_THREADS, 2)
gemm_tn_bytes_mma(OPERAND(const float, a), const u8 *bytes, const int *rows, float scale, float shift,
                  OPERAND(float, c), OPERAND(const float, aux), int m, int n, int k, int epilogue, float factor) {
  gemm_tn_bytes_mma_of(GridBlock(), PASS(a), bytes, rows, scale, shift, PASS(c), PASS(aux), m, n, k, epilogue, factor);
}
