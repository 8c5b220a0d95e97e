// Dropout with the random streams of fspda/internal/rng and the CPU's bits (cpu/vec/dropout.go).
#include "half.cuh"

#define DROPOUT_GOLDEN 0x9e3779b97f4a7c15ull

// dropout_mix is the finalizer of splitmix64.
__device__ inline u64 dropout_mix(u64 z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

// dropout: y = x·factor where 32 bits of the stream are at least `least`, else 0. The key is four
// numbers of 16 bits; with the key 0, y = x. A thread has two numbers, which share a draw. y may be x.
template <class T>
__device__ inline void dropout(T *y, const T *x, const float *key_parts, i64 n, int layer, u32 least, float factor) {
  const i64 j = thread_index();
  if (2 * j >= n) return;
  const u64 key = (u64)key_parts[0] | (u64)key_parts[1] << 16 | (u64)key_parts[2] << 32 | (u64)key_parts[3] << 48;
  u64 state = dropout_mix(key ^ DROPOUT_GOLDEN);
  state = dropout_mix(dropout_mix(state + DROPOUT_GOLDEN) ^ (u64)layer);
  state = dropout_mix(state + 1);
  const u64 bits = dropout_mix(state + DROPOUT_GOLDEN * (u64)(j + 1));
#pragma unroll
  for (int k = 0; k < 2; k++) {
    const i64 i = 2 * j + k;
    if (i >= n) break;
    if (key == 0)
      y[i] = x[i];
    else
      y[i] = Number<T>::from((u32)(bits >> 32 * k) >= least ? to_float(x[i]) * factor : 0.0f);
  }
}

#define DROPOUT_KERNEL(T, name)                                                                                        \
  KERNEL(256)                                                                                                          \
  dropout_##name(T *y, const T *x, const float *key, i64 n, int layer, u32 least, float factor) {                      \
    dropout<T>(y, x, key, n, layer, least, factor);                                                                    \
  }

DROPOUT_KERNEL(float, f32)
DROPOUT_KERNEL(Half, f16)
DROPOUT_KERNEL(BFloat, bf16)
