package images

import (
	"fmt"
	"strconv"
)

// numberClasses treats class names that are all numbers as labels, so that 10 is sorted after 9. It
// applies if the number of classes matches the largest label.
func (l *listing) numberClasses() {
	most := -1
	for _, f := range l.found {
		for c := range f.classes {
			n, err := strconv.Atoi(c)
			if err != nil {
				return
			}
			most = max(most, n)
		}
	}
	l.numbered = most + 1
}

func (l *listing) classNames(f *found) []string {
	names := make([]string, l.numbered)
	none := 0
	for i := range names {
		names[i] = strconv.Itoa(i)
		if f.classes[names[i]] == 0 {
			none++
		}
	}
	if none > 0 {
		l.notes = append(l.notes, fmt.Sprintf("%d of %d classes have no picture in %s", none, l.numbered, f.folder))
	}
	return names
}
