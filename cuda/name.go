package cuda

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseName reads "cuda", which is the first GPU, or "cuda:N".
func ParseName(name string) (index int, err error) {
	kind, number, given := strings.Cut(name, ":")
	if kind == "cuda" && !given {
		return 0, nil
	}
	index, err = strconv.Atoi(number)
	if kind != "cuda" || err != nil || index < 0 {
		return 0, fmt.Errorf("cuda: device %q: want cuda, or cuda:N with N from 0 on", name)
	}
	return index, nil
}
