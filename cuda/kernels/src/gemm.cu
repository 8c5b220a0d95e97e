// Matrix products of several agents. See gemm.cuh.
#include "gemm.cuh"

#define GEMM(name, threads, Product)                                                                                   \
  KERNEL_OCCUPANCY(threads, 384 / threads)                                                                             \
  name(OPERAND(const float, a), OPERAND(const float, b), OPERAND(float, c), OPERAND(const float, aux),                 \
       int m, int n, int k, int epilogue, float factor) {                                                              \
    gemm_of<Product>(GridBlock(), PASS(a), PASS(b), PASS(c), PASS(aux), m, n, k, epilogue, factor);                    \
  }
GEMM(gemm_nt_32, 64, SmallNT)
GEMM(gemm_nn_32, 64, SmallNN)
GEMM(gemm_tn_32, 64, SmallTN)
GEMM(gemm_nt_64, 256, LargeNT)
GEMM(gemm_nn_64, 256, LargeNN)
GEMM(gemm_tn_64, 256, LargeTN)
GEMM(gemm_nt_tf32, 128, TensorCoreNT)
GEMM(gemm_nn_tf32, 128, TensorCoreNN)
GEMM(gemm_tn_tf32, 128, TensorCoreTN)

#define GEMM_NT_BYTES(name, threads, Product)                                                                          \
  KERNEL_OCCUPANCY(threads, 384 / threads)                                                                             \
  name(const u8 *bytes, const int *rows, float scale, float shift, OPERAND(const float, b), OPERAND(float, c),         \
       OPERAND(const float, aux), int m, int n, int k, int epilogue, float factor) {                                   \
    gemm_nt_bytes_of<Product>(GridBlock(), bytes, rows, scale, shift, PASS(b), PASS(c), PASS(aux), m, n, k, epilogue,  \
                              factor);                                                                                 \
  }
GEMM_NT_BYTES(gemm_nt_bytes, 64, SmallNT)
GEMM_NT_BYTES(gemm_nt_bytes_tf32, 128, TensorCoreNT)

#define GEMM_TN_BYTES(name, threads, Product)                                                                          \
  KERNEL_OCCUPANCY(threads, 384 / threads)                                                                             \
  name(OPERAND(const float, a), const u8 *bytes, const int *rows, float scale, float shift, OPERAND(float, c),         \
       OPERAND(const float, aux), int m, int n, int k, int epilogue, float factor) {                                   \
    gemm_tn_bytes_of<Product>(GridBlock(), PASS(a), bytes, rows, scale, shift, PASS(c), PASS(aux), m, n, k, epilogue,  \
                              factor);                                                                                 \
  }
GEMM_TN_BYTES(gemm_tn_bytes, 64, SmallTN)
GEMM_TN_BYTES(gemm_tn_bytes_tf32, 128, TensorCoreTN)

KERNEL_OCCUPANCY(256, 1)
gemm_nt_bytes_parts(const u8 *bytes, const int *rows, float scale, float shift, OPERAND(const float, b), float *part,
                    int parts, int m, int n, int k) {
  gemm_nt_bytes_parts_of(GridBlock(), bytes, rows, scale, shift, PASS(b), part, parts, m, n, k);
}

KERNEL_OCCUPANCY(128, 2)
gemm_tn_bytes_wide(OPERAND(const float, a), const u8 *bytes, const int *rows, float scale, float shift,
                   OPERAND(float, c), OPERAND(const float, aux), int m, int n, int k, int epilogue, float factor) {
  gemm_tn_bytes_wide_of(GridBlock(), PASS(a), bytes, rows, scale, shift, PASS(c), PASS(aux), m, n, k, epilogue, factor);
}

KERNEL_OCCUPANCY(COLUMN_THREADS, 6)
gemm_tn_narrow(OPERAND(const float, a), OPERAND(const float, b), OPERAND(float, c), OPERAND(const float, aux), int m,
               int n, int k, int epilogue, float factor) {
  gemm_tn_narrow_of(GridBlock(), PASS(a), PASS(b), PASS(c), PASS(aux), m, n, k, epilogue, factor);
}
