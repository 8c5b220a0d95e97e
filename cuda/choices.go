package cuda

import "fspda/cuda/cudnn"

// ReadChoices returns the implementations of convolutions that were chosen on this machine, from the
// user's cache folder, a line of JSON each.
func ReadChoices() ([]byte, error) {
	dir, err := cudnn.DefaultDir()
	if err != nil {
		return nil, err
	}
	return cudnn.ReadChoices(dir)
}

// AddChoices adds lines, also of another machine, to the user's cache folder. They are used on GPUs
// of the same name with the same version of cuDNN.
func AddChoices(lines []byte) error {
	dir, err := cudnn.DefaultDir()
	if err != nil {
		return err
	}
	return cudnn.AddChoices(dir, lines)
}
