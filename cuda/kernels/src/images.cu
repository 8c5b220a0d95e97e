// Converts images of bytes to numbers: a crop, mirrored or not, normalised, with the channels last
// and padding channels.
#include "half.cuh"

// Crop is the position of a crop: output pixel y, x is input pixel y+top, x'+left, with x' = x or
// its mirror image. Pixels outside are byte 0.
struct Crop {
  int top, left, mirror;
};

// images: dst[i][y][x][ch] = byte·scale[ch] + shift[ch], the product rounded first, for the n
// images rows[i] of h×w×c bytes, or image i if rows is null. Channels from c to padded are 0. scale
// and shift hold c numbers (stride 1) or one (stride 0). If crops is null, images are neither
// cropped nor mirrored.
template <class T> __device__ inline void images(T *dst, const u8 *bytes, const int *rows, const Crop *crops,
                                                 const float *scale, const float *shift, int stride, i64 n, int h,
                                                 int w, int c, int height, int width, int padded) {
  const u32 pixel = blockIdx.x * blockDim.x + threadIdx.x;
  const i64 image = (i64)blockIdx.z * gridDim.y + blockIdx.y;
  const int y = (int)(pixel / (u32)width), x = (int)(pixel - (u32)y * (u32)width);
  if (y >= height || image >= n) return;
  Crop v = {0, 0, 0};
  if (crops) v = crops[image];
  const int row = y + v.top, column = (v.mirror ? width - 1 - x : x) + v.left;
  const bool inside = row >= 0 && row < h && column >= 0 && column < w;
  const u8 *from =
      bytes + (((rows ? (i64)rows[image] : image) * h + (inside ? row : 0)) * w + (inside ? column : 0)) * c;
  T *to = dst + (image * height * width + pixel) * padded;
  if (padded == 4 && aligned16(address(dst))) { // write a pixel at once
    union {
      T pixel[4];
      uint2 two;
      uint4 four;
    } u;
#pragma unroll
    for (int ch = 0; ch < 4; ch++) {
      float b = ch < c && inside ? (float)from[ch] : 0.0f;
      u.pixel[ch] = Number<T>::from(ch < c ? b * scale[ch * stride] + shift[ch * stride] : 0.0f);
    }
    if (sizeof(T) == 2)
      *(uint2 *)to = u.two;
    else
      *(uint4 *)to = u.four;
    return;
  }
  for (int ch = 0; ch < padded; ch++) {
    float b = ch < c && inside ? (float)from[ch] : 0.0f;
    to[ch] = Number<T>::from(ch < c ? b * scale[ch * stride] + shift[ch * stride] : 0.0f);
  }
}

#define IMAGE_KERNELS(T, name)                                                                                         \
  KERNEL(256)                                                                                                          \
  images_##name(T *dst, const u8 *bytes, const int *rows, const Crop *crops, const float *scale, const float *shift,   \
                int stride, i64 n, int h, int w, int c, int height, int width, int padded) {                           \
    images<T>(dst, bytes, rows, crops, scale, shift, stride, n, h, w, c, height, width, padded);                       \
  }

IMAGE_KERNELS(float, f32)
IMAGE_KERNELS(Half, f16)
IMAGE_KERNELS(BFloat, bf16)
