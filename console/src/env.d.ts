interface ImportMeta {
  readonly env: { readonly DEV: boolean };
}
declare module "*.css";
declare module "*.svg" {
  const address: string;
  export default address;
}
