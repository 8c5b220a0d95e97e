package cuda

import "fspda/cuda/cudnn"

// Choices is the implementations of convolutions that were chosen on this machine.
type Choices struct{}

// Lines returns the choices in the user's cache folder, a line of JSON each.
func (Choices) Lines() ([]byte, error) {
	dir, err := cudnn.DefaultDir()
	if err != nil {
		return nil, err
	}
	return cudnn.ReadChoices(dir)
}

// Add adds lines, also of another machine, to the user's cache folder. They are used on GPUs of the
// same name with the same version of cuDNN.
func (Choices) Add(lines []byte) error {
	dir, err := cudnn.DefaultDir()
	if err != nil {
		return err
	}
	return cudnn.AddChoices(dir, lines)
}
