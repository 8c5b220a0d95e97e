// ReLU with a bit mask of the positive numbers, in the format that cuBLASLt reads for the gradient
// (CUBLASLT_EPILOGUE_DRELU): bit j%8 of byte j/8 of a row.
#include "exponential.cuh"
#include "half.cuh"

// relu_bits: y = max(y, 0) in place, for rows of n numbers, and one bit per number in rows of
// `bytes` bytes; bits beyond the row are 0. A thread writes one byte.
template <class T> __device__ inline void relu_bits(T *y, u8 *bits, i64 rows, int n, int bytes) {
  const i64 i = thread_index();
  if (i >= rows * bytes) return;
  const int first = (int)(i % bytes) * 8;
  T *mine = y + i / bytes * n + first;
  const int count = n - first < 8 ? n - first : 8;
  u32 set = 0;
#pragma unroll
  for (int j = 0; j < 8; j++)
    if (j < count) {
      const float v = to_float(mine[j]);
      if (v > 0.0f) set |= 1u << j;
      mine[j] = Number<T>::from(relu_of(v));
    }
  bits[i] = (u8)set;
}

KERNEL(256) relu_bits_f32(float *y, u8 *bits, i64 rows, int n, int bytes) { relu_bits<float>(y, bits, rows, n, bytes); }
KERNEL(256) relu_bits_f16(Half *y, u8 *bits, i64 rows, int n, int bytes) { relu_bits<Half>(y, bits, rows, n, bytes); }
KERNEL(256) relu_bits_bf16(BFloat *y, u8 *bits, i64 rows, int n, int bytes) {
  relu_bits<BFloat>(y, bits, rows, n, bytes);
}
