// The module image that the fake NVRTC produces and the fake driver loads.
#pragma once
#include <string.h>

namespace fakecuda {

struct Image {
  char magic[16];
  int arch;           // 90 for sm_90
  char unit[60];      // "vector.cu"
  char library[4000]; // path of the library of host kernels
};

// Begins like an ELF file, as a cubin does.
constexpr char image_magic[16] = "\177ELF fakecuda\n";

} // namespace fakecuda
