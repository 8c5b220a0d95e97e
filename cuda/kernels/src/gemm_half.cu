// Matrix products of several agents' small networks in 16 bits. See gemm_half.cuh.
#include "gemm_half.cuh"

#define GEMM_HALF(name, T, a_along, b_along)                                                                           \
  KERNEL_OCCUPANCY(128, 3)                                                                                             \
  name(OPERAND(const float, a), OPERAND(const float, b), OPERAND(float, c), OPERAND(const float, aux),                 \
       OPERAND(float, sums), int m, int n, int k, int epilogue, float factor, int round, Scaler *const *scalers) {     \
    typedef HalfProduct<T, a_along, b_along> Product;                                                                  \
    gemm_half_of<Product>(GridBlock(), PASS(a), PASS(b), PASS(c), PASS(aux), PASS(sums), m, n, k, epilogue, factor,    \
                          round, scalers);                                                                             \
  }

#define GEMM_BYTES_HALF(T, suffix)                                                                                     \
  KERNEL_OCCUPANCY(128, 3)                                                                                             \
  gemm_nt_bytes_##suffix(const u8 *bytes, const int *rows, float scale, float shift, OPERAND(const float, b),          \
                         OPERAND(float, c), OPERAND(const float, aux), int m, int n, int k, int epilogue,              \
                         float factor, int round, Scaler *const *scalers) {                                            \
    typedef HalfProduct<T, true, true> Product;                                                                        \
    gemm_nt_bytes_half_of<Product>(GridBlock(), bytes, rows, scale, shift, PASS(b), PASS(c), PASS(aux), m, n, k,       \
                                   epilogue, factor, round, scalers);                                                  \
  }                                                                                                                    \
  KERNEL_OCCUPANCY(128, 3)                                                                                             \
  gemm_tn_bytes_##suffix(OPERAND(const float, a), const u8 *bytes, const int *rows, float scale, float shift,          \
                         OPERAND(float, c), OPERAND(const float, aux), OPERAND(float, sums), int m, int n, int k,      \
                         int epilogue, float factor, int round, Scaler *const *scalers) {                              \
    typedef HalfProduct<T, false, false> Product;                                                                      \
    gemm_tn_bytes_half_of<Product>(GridBlock(), PASS(a), bytes, rows, scale, shift, PASS(c), PASS(aux), PASS(sums), m, \
                                   n, k, epilogue, factor, round, scalers);                                            \
  }

GEMM_HALF(gemm_nt_f16, Half, true, true)
GEMM_HALF(gemm_nn_f16, Half, true, false)
GEMM_HALF(gemm_tn_f16, Half, false, false)
GEMM_BYTES_HALF(Half, f16)
GEMM_HALF(gemm_nt_bf16, BFloat, true, true)
GEMM_HALF(gemm_nn_bf16, BFloat, true, false)
GEMM_HALF(gemm_tn_bf16, BFloat, false, false)
GEMM_BYTES_HALF(BFloat, bf16)

KERNEL(256) scale_each(float *x, i64 stride, i64 n, Scaler *const *scalers) {
  scale_each_of(GridBlock(), x, stride, n, scalers);
}

KERNEL(256) zero_if_inf_each(float *const *g, Scaler *const *scalers, i64 n) {
  zero_if_inf_each_of(GridBlock(), g, scalers, n);
}

KERNEL(32)
step_each(Scaler *const *scalers, Scaler *out, int agents, float growth, float backoff, float largest, u32 interval) {
  step_each_of(GridBlock(), scalers, out, agents, growth, backoff, largest, interval);
}
