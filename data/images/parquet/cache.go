package parquet

import "slices"

const (
	maxCursors = 8        // read positions
	maxKept    = 64 << 20 // bytes of cached images
	readAhead  = 16       // rows read at a time
)

// cache keeps open read positions and the images read last, because sequential readers, also
// several goroutines, request adjacent rows.
type cache struct {
	cursors []placed // most recently used last
	blocks  []block  // most recently read last
	kept    int      // bytes in blocks
}

type placed struct {
	group  int
	cursor *column
}

// block is a range of rows of a group that were read together.
type block struct {
	group, first int
	rows         [][]byte
	size         int
}

// row returns a row of a group, the index-th of its shard, or nil if the row is null.
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
			picture = append([]byte{}, v.b...) // copied because the page's memory is reused
		}
		b.rows = append(b.rows, picture)
		b.size += len(picture)
	}
	c.cursors = append(c.cursors, placed{group, cur})
	c.keep(b)
	return b.rows[0], nil
}

// near takes the cursor closest before a row, or opens one.
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

// keep evicts blocks to make room for one.
func (c *cache) keep(b block) {
	c.kept += b.size
	for len(c.blocks) > 0 && (c.kept > maxKept || len(c.blocks) > 256) {
		c.kept -= c.blocks[0].size
		c.blocks = slices.Delete(c.blocks, 0, 1)
	}
	c.blocks = append(c.blocks, b)
}
