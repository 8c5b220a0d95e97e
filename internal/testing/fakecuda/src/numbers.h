// float32 and 16-bit numbers as the matrix libraries store them, converted to and from float64.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

namespace fakecuda {

// Number types with the values of cudaDataType.
constexpr int float32 = 0, float16 = 2, bfloat16 = 14;

inline bool is_number(int type) { return type == float32 || type == float16 || type == bfloat16; }
inline size_t number_bytes(int type) { return type == float32 ? 4 : 2; }

inline double half_to_double(uint16_t h) {
  int e = h >> 10 & 31, f = h & 1023;
  double v = e == 31 ? (f ? NAN : INFINITY) : e ? ldexp(1024 + f, e - 25) : ldexp(f, -24);
  return h & 0x8000 ? -v : v;
}

// double_to_half rounds to nearest, ties to even.
inline uint16_t double_to_half(double v) {
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  v = fabs(v);
  if (v != v) return 0x7fff;
  if (v >= 65520) return sign | 0x7c00;
  if (v < 0x1p-14) return sign | (uint16_t)nearbyint(ldexp(v, 24));
  int e;
  double m = nearbyint(ldexp(frexp(v, &e), 11)); // 1024..2048
  return sign | (uint16_t)(((e + 14) << 10) + (int)m - 1024);
}

inline double get_number(const void *at, int type, size_t i) {
  if (type == float32) return ((const float *)at)[i];
  uint16_t b = ((const uint16_t *)at)[i];
  if (type == float16) return half_to_double(b);
  uint32_t wide = (uint32_t)b << 16;
  float f;
  memcpy(&f, &wide, 4);
  return f;
}

inline void put_number(void *at, int type, size_t i, double v) {
  if (type == float32)
    ((float *)at)[i] = (float)v;
  else if (type == float16)
    ((uint16_t *)at)[i] = double_to_half((double)(float)v);
  else {
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4);
    ((uint16_t *)at)[i] = v != v ? 0x7fff : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
  }
}

// tf32 rounds a float32 to a 10-bit mantissa.
inline double tf32(double v) {
  float f = (float)v;
  uint32_t u;
  memcpy(&u, &f, 4);
  u = (u + 0x1000) & 0xffffe000u;
  memcpy(&f, &u, 4);
  return v - v == 0 ? f : v;
}

} // namespace fakecuda
