package parquet

import "slices"

const (
	maxCursors = 8        // places that are read on from
	maxKept    = 64 << 20 // bytes of pictures that are kept
	readAhead  = 16       // rows that are read at a time
)

// cache keeps the places where reading stopped, and the pictures read last. Neighbours are asked
// for together where a set is read in order, by several goroutines at a time.
type cache struct {
	cursors []placed // the one used last at the end
	blocks  []block  // the one read last at the end
	kept    int      // bytes in blocks
}

type placed struct {
	group  int
	cursor *column
}

// block is rows of a group that were read together.
type block struct {
	group, first int
	rows         [][]byte
	size         int
}

// row returns a row of a group, which is the index-th of its shard. It is nil where the row is
// null.
func (c *cache) row(s *shard, group, index, row int) ([]byte, error) {
	for _, b := range c.blocks {
		if b.group == group && row >= b.first && row < b.first+len(b.rows) {
			return b.rows[row-b.first], nil
		}
	}
	cur := c.near(s, group, index, row)
	if err := cur.skip(row - cur.pos); err != nil {
		return nil, err
	}
	b := block{group: group, first: row}
	left := s.footer.groups[index].rows - row
	for len(b.rows) < min(readAhead, left) && b.size < maxKept/4 {
		v, ok, err := cur.next()
		if err != nil {
			return nil, err
		}
		var picture []byte
		if ok {
			picture = append([]byte{}, v.b...) // the page ends at some time
		}
		b.rows = append(b.rows, picture)
		b.size += len(picture)
	}
	c.cursors = append(c.cursors, placed{group, cur})
	c.keep(b)
	return b.rows[0], nil
}

// near takes out the cursor that has the shortest way to a row, or opens one.
func (c *cache) near(s *shard, group, index, row int) *column {
	best := -1
	for i, p := range c.cursors {
		if p.group == group && p.cursor.pos <= row && (best < 0 || p.cursor.pos > c.cursors[best].cursor.pos) {
			best = i
		}
	}
	if best >= 0 {
		cur := c.cursors[best].cursor
		c.cursors = slices.Delete(c.cursors, best, best+1)
		return cur
	}
	if len(c.cursors) >= maxCursors {
		c.cursors = slices.Delete(c.cursors, 0, 1)
	}
	return newColumn(s, index, s.content)
}

// keep makes room for a block.
func (c *cache) keep(b block) {
	c.kept += b.size
	for len(c.blocks) > 0 && (c.kept > maxKept || len(c.blocks) > 256) {
		c.kept -= c.blocks[0].size
		c.blocks = slices.Delete(c.blocks, 0, 1)
	}
	c.blocks = append(c.blocks, b)
}
