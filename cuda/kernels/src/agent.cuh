// Vectors of several agents in one launch. The z index of a block selects the agent.
#pragma once
#include "block.cuh"

// agent_vector returns the start of the agent's matrix: in its vector from the list, or in the only
// vector if the list is null.
template <class Block, class T>
__device__ inline T *agent_vector(const Block &block, T *const *list, T *only, i64 offset) {
  T *p = list ? list[block.z()] : only;
  return global(p ? p + offset : p);
}

// An operand of a kernel is three parameters: a list of the agents' vectors in device memory; the
// only vector, used if the list is null; and an offset into the vector.
#define OPERAND(T, name) T *const *name##_list, T *name, i64 name##_offset
#define PASS(name) name##_list, name, name##_offset
#define AGENT(block, name) agent_vector(block, PASS(name))
