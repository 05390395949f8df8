package sink

// alone is the size from which on rows are written one by one.
const alone = 8

// Isolate finds the rows of a batch that cannot be written, with few calls. It
// calls write for pieces lo to hi (exclusive) of n rows, in order; write writes a
// whole piece or nothing of it. A piece whose error splits is halved, a small one
// is written row by row. Any other error ends it, and stands for all rows that
// were not written. The answer has an error per row.
//
// The cost is bounded: one bad row costs about 2×log2(n) calls; if all are bad, n
// calls for rows and less than n/2 for pieces.
func Isolate(n int, splits func(error) bool, write func(lo, hi int) error) []error {
	errs := make([]error, n)
	var piece func(lo, hi int) bool
	piece = func(lo, hi int) bool {
		err := write(lo, hi)
		switch {
		case err == nil:
			return true
		case !splits(err):
			for i := lo; i < n; i++ {
				errs[i] = err
			}
			return false
		case hi-lo == 1:
			errs[lo] = err
			return true
		case hi-lo <= alone:
			for i := lo; i < hi; i++ {
				if !piece(i, i+1) {
					return false
				}
			}
			return true
		}
		mid := lo + (hi-lo)/2
		return piece(lo, mid) && piece(mid, hi)
	}
	if n > 0 {
		piece(0, n)
	}
	return errs
}
