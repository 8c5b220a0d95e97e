// What the stand-in of NVRTC makes and that of the driver loads.
#pragma once
#include <string.h>

namespace fakecuda {

struct Image {
  char magic[16];
  int arch;           // 90 for sm_90
  char unit[60];      // "vector.cu"
  char library[4000]; // path of the kernels for the host
};

// An ELF file, as a cubin is, for those who look.
constexpr char image_magic[16] = "\177ELF stand-in\n";

} // namespace fakecuda
