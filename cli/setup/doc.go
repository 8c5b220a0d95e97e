// Package setup turns command lines into the inputs of a run: a configuration, a data set, a
// network and devices.
//
// The steps are [ReadConfig], [OpenDevices], [OpenData], and [Resolve] or [Prepare], in this order.
// Nothing here writes files. The caller closes the devices and the data set.
package setup
