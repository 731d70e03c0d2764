// Package kyma has the stages that bring a cluster to the Kyma that its runtime is to have: an installation and an upgrade are the same.
package kyma
