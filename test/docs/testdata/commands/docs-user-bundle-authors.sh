until ebctl bundle list --kubeconfig .sandbox/bundles.kubeconfig; do sleep 0.2; done
until [ -e .sandbox/bundles/tls.crt ]; do sleep 0.2; done
