// What the graph API needs of the rest of cuDNN.
#pragma once
#include "backend_abi.h"

namespace fakecuda {

// stream_of is the stream of a handle; known tells whether there is such a handle.
void *stream_of(cudnnHandle_t h, bool *known);

// numbers_of is a type of cuDNN's in the numbering of numbers.h, or -1.
int numbers_of(int type);

} // namespace fakecuda
