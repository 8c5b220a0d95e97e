package cpu

import "fspda/cpu/vec"

// Vector is a vector of this device.
type Vector = vec.Vector

// Index is a set of coordinates on this device.
type Index = vec.Index

// LabelError reports a label that is not a class. Run and Call return it, wrapped.
type LabelError = vec.LabelError
