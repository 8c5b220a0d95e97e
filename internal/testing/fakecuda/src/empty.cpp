// A part of a library that is opened by name and is empty here.
extern "C" __attribute__((visibility("default"))) int fakecuda_empty(void) { return 0; }
