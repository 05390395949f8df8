package queue

import (
	"context"

	"github.com/forebayhq/forebay"
)

func (s *Service) sift(_ context.Context, _ *queue, ds []forebay.Delivery) ([]forebay.Delivery, error) {
	return ds, nil
}
