replace ACCOUNT my-account
