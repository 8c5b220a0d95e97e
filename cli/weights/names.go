package weights

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// wrappers are the prefixes that PyTorch puts before all names of a network that is wrapped: for
// several GPUs, or compiled.
var wrappers = []string{"module.", "_orig_mod."}

// names maps torchvision's names of tensors to the names in a file: PyTorch's, or Hugging Face's
// for a ResNet.
func names(file []string) map[string]string {
	ours, prefix := map[string]string{}, commonPrefix(file)
	for _, name := range file {
		ours[torchvisionName(strings.TrimPrefix(name, prefix))] = name
	}
	return ours
}

// commonPrefix returns the wrappers that all names begin with.
func commonPrefix(file []string) (prefix string) {
	for i := 0; i < len(wrappers); i++ {
		all := len(file) > 0
		for _, name := range file {
			all = all && strings.HasPrefix(name, prefix+wrappers[i])
		}
		if all {
			prefix, i = prefix+wrappers[i], -1
		}
	}
	return prefix
}

// blockName matches the tensors of a block in Hugging Face's ResNet.
var blockName = regexp.MustCompile(
	`^(?:resnet\.)?encoder\.stages\.(\d+)\.layers\.(\d+)\.(?:(shortcut)|layer\.(\d+))\.(convolution|normalization)\.(.+)$`)

// otherNames are the names outside of blocks.
var otherNames = strings.NewReplacer("resnet.embedder.embedder.convolution.", "conv1.",
	"resnet.embedder.embedder.normalization.", "bn1.", "classifier.1.", "fc.")

// torchvisionName translates a name of Hugging Face's ResNet; it returns others unchanged.
func torchvisionName(name string) string {
	m := blockName.FindStringSubmatch(name)
	if m == nil {
		return otherNames.Replace(name)
	}
	kind := map[string][2]string{"convolution": {"conv", "downsample.0"}, "normalization": {"bn", "downsample.1"}}[m[5]]
	layer := kind[1]
	if m[3] == "" {
		layer = kind[0] + next(m[4])
	}
	return fmt.Sprintf("layer%s.%s.%s.%s", next(m[1]), m[2], layer, m[6])
}

// next returns the number after one that is written in digits.
func next(digits string) string {
	n, _ := strconv.Atoi(digits)
	return strconv.Itoa(n + 1)
}
