// Vectors of several agents in one launch: z of a block is the agent.
#pragma once
#include "block.cuh"

// of_agent is where the agent's matrix begins: in the vector that the list has for it, or the only one.
template <class Block, class T> __device__ inline T *of_agent(const Block &block, T *const *list, T *only, i64 offset) {
  T *p = list ? list[block.z()] : only;
  return global(p ? p + offset : p);
}

// Operands of a kernel: a list of the agents' vectors in device memory, or where that is null the only vector, and an offset in it.
#define OPERAND(T, name) T *const *name##_list, T *name, i64 name##_offset
#define PASS(name) name##_list, name, name##_offset
#define AGENT(block, name) of_agent(block, PASS(name))
