// Matrix products of several agents' small networks in 16 bits. See gemm_half.cuh.
#include "short.cuh"

#define GEMM_SHORT(name, T, a_along, b_along)                                                                                            \
  KERNEL_OF(128, 3)                                                                                                                      \
  name(OPERAND(const float, a), OPERAND(const float, b), OPERAND(float, c), OPERAND(const float, with), OPERAND(float, sums), int m,     \
       int n, int k, int then, float factor, int round, Scaler *const *scalers) {                                                        \
    typedef Short<T, a_along, b_along> Product;                                                                                          \
    gemm_short_of<Product>(Launched(), PASS(a), PASS(b), PASS(c), PASS(with), PASS(sums), m, n, k, then, factor, round, scalers);        \
  }

#define GEMM_BYTES_SHORT(T, suffix)                                                                                                      \
  KERNEL_OF(128, 3)                                                                                                                      \
  gemm_nt_bytes_##suffix(const u8 *bytes, const int *rows, float scale, float shift, OPERAND(const float, b), OPERAND(float, c),         \
                         OPERAND(const float, with), int m, int n, int k, int then, float factor, int round, Scaler *const *scalers) {   \
    typedef Short<T, true, true> Product;                                                                                                \
    gemm_nt_bytes_short_of<Product>(Launched(), bytes, rows, scale, shift, PASS(b), PASS(c), PASS(with), m, n, k, then, factor, round,   \
                                    scalers);                                                                                            \
  }                                                                                                                                      \
  KERNEL_OF(128, 3)                                                                                                                      \
  gemm_tn_bytes_##suffix(OPERAND(const float, a), const u8 *bytes, const int *rows, float scale, float shift, OPERAND(float, c),         \
                         OPERAND(const float, with), OPERAND(float, sums), int m, int n, int k, int then, float factor, int round,       \
                         Scaler *const *scalers) {                                                                                       \
    typedef Short<T, false, false> Product;                                                                                              \
    gemm_tn_bytes_short_of<Product>(Launched(), PASS(a), bytes, rows, scale, shift, PASS(c), PASS(with), PASS(sums), m, n, k, then,      \
                                    factor, round, scalers);                                                                             \
  }

GEMM_SHORT(gemm_nt_f16, Half, true, true)
GEMM_SHORT(gemm_nn_f16, Half, true, false)
GEMM_SHORT(gemm_tn_f16, Half, false, false)
GEMM_BYTES_SHORT(Half, f16)
GEMM_SHORT(gemm_nt_bf16, Brain, true, true)
GEMM_SHORT(gemm_nn_bf16, Brain, true, false)
GEMM_SHORT(gemm_tn_bf16, Brain, false, false)
GEMM_BYTES_SHORT(Brain, bf16)

KERNEL(256) scale_each(float *x, i64 apart, i64 n, Scaler *const *scalers) { scale_each_of(Launched(), x, apart, n, scalers); }

KERNEL(256) drop_each(float *const *g, Scaler *const *scalers, i64 n) { drop_each_of(Launched(), g, scalers, n); }

KERNEL(32) step_each(Scaler *const *scalers, Scaler *out, int agents, float growth, float backoff, float largest, u32 interval) {
  step_each_of(Launched(), scalers, out, agents, growth, backoff, largest, interval);
}
