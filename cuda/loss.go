package cuda

import "fspda/cuda/driver"

// Lost tells whether an error says that a GPU is lost: nothing works on it any more in this
// process.
func Lost(err error) bool { return driver.Lost(err) }
