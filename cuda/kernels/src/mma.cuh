// Tensor cores: products of 16-bit numbers with sums in float32, and loads of their operands from
// shared memory. GPUs below sm_80 have neither.
#pragma once
#include "half.cuh"

// pair packs two 16-bit numbers, the first in the lower half.
template <class T> __device__ inline u32 pair(float low, float high) {
  return (u32)Number<T>::from(low).bits | (u32)Number<T>::from(high).bits << 16;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define PAIR(T, type)                                                                                                  \
  template <> __device__ inline u32 pair<T>(float low, float high) {                                                   \
    u32 p;                                                                                                             \
    asm("cvt.rn." type "x2.f32 %0, %1, %2;" : "=r"(p) : "f"(high), "f"(low));                                          \
    return p;                                                                                                          \
  }
PAIR(Half, "f16")
PAIR(BFloat, "bf16")
#endif
template <class T> __device__ inline float low_of(u32 p) { return to_float(T{(u16)p}); }
template <class T> __device__ inline float high_of(u32 p) { return to_float(T{(u16)(p >> 16)}); }

template <class T> __device__ inline float rounded_to(float v) { return to_float(Number<T>::from(v)); }

#ifdef FSPDA_HOST
// mma_half is mma.m16n8k16 of PTX: D = A·B + C. With g = lane/4 and t = lane%4, the registers of a
// lane hold pairs from A[g][2t], A[g+8][2t], A[g][2t+8], A[g+8][2t+8]; B[2t][g], B[2t+8][g]; and
// C[g][2t], C[g][2t+1], C[g+8][2t], C[g+8][2t+1].
template <class T> inline void mma_half(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  host::Factors &f = host::next_factors();
  const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
  for (int i = 0; i < 4; i++) {
    double *p = f.a[g + i % 2 * 8] + 2 * t + i / 2 * 8;
    p[0] = low_of<T>(a[i]), p[1] = high_of<T>(a[i]);
  }
  for (int i = 0; i < 2; i++) {
    double *p = f.b[g] + 2 * t + i * 8;
    p[0] = low_of<T>(b[i]), p[1] = high_of<T>(b[i]);
  }
  host::add_product<16>(c, f);
}
#else
template <class T> __device__ inline void mma_half(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]);
#if __CUDA_ARCH__ >= 800
#define MMA_HALF(T, type)                                                                                              \
  template <> __device__ inline void mma_half<T>(float (&c)[4], const u32(&a)[4], const u32(&b)[2]) {                  \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                                                \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "                                                 \
                 "{%0, %1, %2, %3};"                                                                                   \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                  \
  }
MMA_HALF(Half, "f16")
MMA_HALF(BFloat, "bf16")
#endif
#endif

// load_matrices is ldmatrix.x4 of PTX: four matrices of 8 rows of 8 numbers of 16 bits from shared
// memory. Lane 8·i + j has the address of row j of matrix i. r[i] of a lane holds the pair at row
// lane/4 and columns 2·(lane%4), +1 of matrix i; if TRANSPOSED, of its transpose.
#ifdef FSPDA_HOST
template <bool TRANSPOSED> inline void load_matrices(u32 (&r)[4], const void *row) {
  const uint64_t *rows = host::meet(ALL_LANES, (uint64_t)row);
  const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
  for (int i = 0; i < 4; i++) {
    const u16 *low = (const u16 *)rows[8 * i + (TRANSPOSED ? 2 * t : g)];
    const u16 *high = (const u16 *)rows[8 * i + (TRANSPOSED ? 2 * t + 1 : g)];
    r[i] = low[TRANSPOSED ? g : 2 * t] | (u32)high[TRANSPOSED ? g : 2 * t + 1] << 16;
  }
}
#elif __CUDA_ARCH__ >= 800
template <bool TRANSPOSED> __device__ inline void load_matrices(u32 (&r)[4], const void *row) {
  const u32 at = (u32)__cvta_generic_to_shared(row);
  if (TRANSPOSED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
#endif

// copy_async copies 16 bytes from device to shared memory while the thread continues; if not there,
// it writes zeros. from must be an address that could be read. end_copies ends a group of copies,
// and wait_copies waits until at most LEFT groups of this thread are under way.
#ifdef FSPDA_HOST
inline void copy_async(void *to, const void *from, bool there) {
  *(uint4 *)to = there ? *(const uint4 *)from : uint4{0, 0, 0, 0};
}
inline void end_copies() {}
template <int LEFT> inline void wait_copies() {}
#elif __CUDA_ARCH__ >= 800
__device__ inline void copy_async(void *to, const void *from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((u32)__cvta_generic_to_shared(to)),
               "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
               : "memory");
}
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}
#endif
