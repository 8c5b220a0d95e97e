// Functions that the graph API needs from the rest of cuDNN.
#pragma once
#include "backend_abi.h"

namespace fakecuda {

// stream_of returns the stream of a handle; known reports whether the handle exists.
void *stream_of(cudnnHandle_t h, bool *known);

// numbers_of converts a type of cuDNN to the numbering of numbers.h, or returns -1.
int numbers_of(int type);

} // namespace fakecuda
