module portcullis.dev/peers/x509

go 1.26.0
