package arm64

import (
	"fmt"
	"maps"
	"slices"
)

// split gives each value of a register a register of its own: a register that is set again, where
// nothing reads the old value any more, need not be the same one. Values are the same that an
// instruction may read in turn, and those that it reads and sets in one operand. Registers with a
// condition on their numbers stay whole.
func (f *Func) split() {
	v := f.values()
	names := map[int]Reg{} // The first definition of each value has a register.
	count := [2]int{}
	name := func(r Reg, definition int) Reg {
		first := v.of(definition)
		if _, ok := names[first]; !ok {
			names[first] = Reg{r.class, count[r.class]}
			count[r.class]++
		}
		return names[first]
	}
	renamed := map[Reg]Reg{}
	for i := range f.insts {
		in := &f.insts[i]
		sets, reads := renaming{}, renaming{}
		in.defs, in.uses = slices.Clone(in.defs), slices.Clone(in.uses) // text has the old ones
		for k, r := range in.uses {
			reads[r] = name(r, v.read[i][k])
			in.uses[k], renamed[r] = reads[r], reads[r]
		}
		for k, r := range in.defs {
			sets[r] = name(r, v.set[i][k])
			in.defs[k], renamed[r] = sets[r], sets[r]
		}
		if text := in.text; text != nil {
			in.text = func(set, read numbers) string {
				return text(sets.numbers(set), reads.numbers(read))
			}
		}
	}
	f.count = count
	for _, group := range append(f.adjacent, f.low) {
		for i, r := range group {
			group[i] = renamed[r]
		}
	}
}

// renaming has the new register for each one of an instruction.
type renaming map[Reg]Reg

// numbers returns the numbers of registers by their old names.
func (n renaming) numbers(of numbers) numbers {
	return func(r Reg) int {
		to, ok := n[r]
		if !ok {
			panic(fmt.Sprintf("arm64: register %v is not among those of its instruction", r))
		}
		return of(to)
	}
}

// values are the definitions of registers: which one each operand sets, or one of those that it may
// read. Definitions of one value are joined.
type values struct {
	set, read [][]int
	same      []int
}

func (v *values) of(d int) int {
	for v.same[d] != d {
		d = v.same[d]
	}
	return d
}

func (v *values) join(a, b int) { v.same[v.of(b)] = v.of(a) }

// values follows the definitions of each register along all jumps.
func (f *Func) values() *values {
	v := &values{set: make([][]int, len(f.insts)), read: make([][]int, len(f.insts))}
	labels, whole := map[string]int{}, map[Reg]int{}
	for _, group := range append(f.adjacent, f.low) {
		for _, r := range group {
			whole[r] = -1
		}
	}
	for i, in := range f.insts {
		if in.label != "" {
			labels[in.label] = i
		}
		for _, r := range in.defs {
			d := len(v.same)
			v.same, v.set[i] = append(v.same, d), append(v.set[i], d)
			if first, ok := whole[r]; ok && first >= 0 {
				v.join(first, d)
			} else if ok {
				whole[r] = d
			}
		}
	}
	reach := f.reach(v, labels)
	for i, in := range f.insts {
		for _, r := range in.uses {
			v.read[i] = append(v.read[i], reach[i][r])
		}
		for k, r := range in.defs {
			if slices.Contains(in.tied, r) {
				v.join(reach[i][r], v.set[i][k])
			}
		}
	}
	return v
}

// reach returns, for each instruction, a definition of each register that reaches it. Where several
// reach a label behind which the register is read, they are joined.
func (f *Func) reach(v *values, labels map[string]int) []map[Reg]int {
	live := [2][]set{f.live(general), f.live(vector)}
	at := make([]map[Reg]int, len(f.insts)+1)
	at[0] = map[Reg]int{}
	for changed := true; changed; {
		changed = false
		for i, in := range f.insts {
			if at[i] == nil { // nothing reaches it yet
				continue
			}
			after := maps.Clone(at[i])
			for k, r := range in.defs {
				after[r] = v.set[i][k]
			}
			if !in.ends {
				if i+1 < len(f.insts) && f.insts[i+1].label != "" {
					changed = v.merge(at, i+1, after, live) || changed
				} else {
					at[i+1] = after
				}
			}
			if in.to != "" {
				changed = v.merge(at, labels[in.to], after, live) || changed
			}
		}
	}
	return at
}

// merge adds definitions to those that reach a label, and reports whether that changed any.
func (v *values) merge(at []map[Reg]int, label int, from map[Reg]int, live [2][]set) (changed bool) {
	if at[label] == nil {
		at[label], changed = map[Reg]int{}, true
	}
	for r, d := range from {
		if !live[r.class][label].has(r.id) {
			continue
		}
		old, ok := at[label][r]
		switch {
		case !ok:
			at[label][r], changed = d, true
		case v.of(old) != v.of(d):
			v.join(old, d)
			changed = true
		}
	}
	return changed
}
