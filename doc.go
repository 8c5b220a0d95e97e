// Package fspda is the root of a trainer for deep networks whose data and machines are spread out.
// It holds no code: the command is fspda/cmd/fspda; for programs of your own start at fspda/train,
// fspda/train/algo, fspda/dist and fspda/model.
package fspda
