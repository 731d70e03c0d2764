package gardener_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"k8s.io/apimachinery/pkg/watch"
)

func TestZZ(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, heard := newBench(t), &told{}
		start := time.Now()
		n := 0
		s := b.through(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				n++
				fmt.Println("list", n, time.Since(start))
				if n < 4 { return errors.New("connection refused") }
				return c.List(ctx, list, options...)
			},
			Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
				fmt.Println("watch", time.Since(start))
				if n < 4 { return nil, errors.New("connection refused") }
				return c.Watch(ctx, list, options...)
			},
		})
		b.apply(runtimeID)
		run(t, func(ctx context.Context) error { return s.Watch(ctx, heard.tell) })
		fmt.Println(heard.since())
		fmt.Println(heard.since())
	})
}
