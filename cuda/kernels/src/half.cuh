// 16-bit numbers: Half is IEEE float16, BFloat is bfloat16. NVRTC has no header for them, so they
// are stored as bits and converted by PTX, or on the host by integer arithmetic. Rounding is to
// nearest, ties to even. NaN becomes the hardware's NaN.
#pragma once
#include "base.cuh"

struct Half {
  u16 bits;
};
struct BFloat {
  u16 bits;
};

__device__ inline float to_float(float v) { return v; }
__device__ inline float to_float(BFloat b) { return __uint_as_float((u32)b.bits << 16); }

__device__ inline u16 bfloat_bits(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  u16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
#else
  u32 u = __float_as_uint(v);
  if (v != v) return 0x7fff;
  return (u16)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
#endif
}

#ifndef FSPDA_HOST
__device__ inline float to_float(Half h) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h.bits));
  return v;
}
__device__ inline u16 half_bits(float v) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
}
#else
inline float to_float(Half h) {
  u32 sign = (u32)(h.bits & 0x8000) << 16, e = h.bits >> 10 & 31, f = h.bits & 1023;
  if (e == 31) return __uint_as_float(sign | 0x7f800000u | f << 13);
  if (e == 0) return __uint_as_float(sign | __float_as_uint((float)f * 0x1p-24f));
  return __uint_as_float(sign | (e + 112) << 23 | f << 13);
}
inline u16 half_bits(float v) {
  u32 u = __float_as_uint(v), sign = u >> 16 & 0x8000, size = u & 0x7fffffff;
  if (v != v) return 0x7fff;
  if (size >= 0x477ff000) return (u16)(sign | 0x7c00); // 65520 and above
  if (size < 0x38800000) {                             // below 2^-14: multiples of 2^-24
    float steps = __uint_as_float(size) * 0x1p24f;     // exact
    float even = (steps + 0x1p23f) - 0x1p23f;
    return (u16)(sign | (u32)even);
  }
  size += 0xfff + (size >> 13 & 1);
  return (u16)(sign | (size - (112u << 23)) >> 13);
}
#endif

template <class T> struct Number;
template <> struct Number<float> {
  __device__ static float from(float v) { return v; }
};
template <> struct Number<Half> {
  __device__ static Half from(float v) { return Half{half_bits(v)}; }
};
template <> struct Number<BFloat> {
  __device__ static BFloat from(float v) { return BFloat{bfloat_bits(v)}; }
};

// Pack is the numbers of 16 bytes, converted to float32: the unit that a thread works on.
template <class T> struct Pack {
  static constexpr int size = 16 / sizeof(T);
  float v[size];
};

// RawPack is a Pack as stored in memory.
template <class T> struct __align__(16) RawPack {
  T v[16 / sizeof(T)];
};

// fetch loads count stored numbers and fills up with zeros. WHOLE says that count is the size of a
// Pack and p is aligned for a 16-byte load.
template <class T, bool WHOLE> __device__ inline RawPack<T> fetch(const T *p, int count) {
  union {
    uint4 words;
    RawPack<T> raw;
  } u;
  if (WHOLE) {
    u.words = *(const uint4 *)p;
  } else {
#pragma unroll
    for (int j = 0; j < Pack<T>::size; j++) u.raw.v[j] = j < count ? p[j] : T{};
  }
  return u.raw;
}

template <class T> __device__ inline Pack<T> unpack(const RawPack<T> &raw) {
  Pack<T> out;
#pragma unroll
  for (int j = 0; j < Pack<T>::size; j++) out.v[j] = to_float(raw.v[j]);
  return out;
}

// load_pack loads and converts count numbers. whole says that count is the size of a Pack and p is
// aligned for a 16-byte load.
template <class T> __device__ inline Pack<T> load_pack(const T *p, int count, bool whole) {
  return unpack(whole ? fetch<T, true>(p, count) : fetch<T, false>(p, count));
}

template <class T> __device__ inline void store_pack(T *p, const Pack<T> &in, int count, bool whole) {
  if (whole) {
    union {
      uint4 words;
      RawPack<T> raw;
    } u;
#pragma unroll
    for (int j = 0; j < Pack<T>::size; j++) u.raw.v[j] = Number<T>::from(in.v[j]);
    *(uint4 *)p = u.words;
  } else {
#pragma unroll
    for (int j = 0; j < Pack<T>::size; j++)
      if (j < count) p[j] = Number<T>::from(in.v[j]);
  }
}

// Quad is four stored numbers that can be loaded at once.
template <class T> struct __align__(4 * sizeof(T)) Quad {
  T v[4];
};

__device__ inline Quad<float> load_quad(const float *p) {
  const Four f = load4(p);
  return Quad<float>{{f.v[0], f.v[1], f.v[2], f.v[3]}};
}

template <class T> __device__ inline Quad<T> load_quad(const T *p) {
  union {
    uint2 words;
    Quad<T> quad;
  } u;
  u.words = *(const uint2 *)p;
  return u.quad;
}
