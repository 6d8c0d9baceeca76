import PromiseCore
import PromiseProvider
import PromiseWebDAV
import Testing
