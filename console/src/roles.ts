import { session } from "./api/client";
import { useStore } from "./store";

// useMay tells what the reader may do; the server has the last word.
export function useMay(): { operate: boolean; admin: boolean } {
  const role = useStore(session)?.role;
  return { operate: role === "operator" || role === "admin", admin: role === "admin" };
}
